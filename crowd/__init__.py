"""The Django project: recruitment, money, and the researchers' pages."""

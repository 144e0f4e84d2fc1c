from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "crowd.dashboard"
    label = "dashboard"

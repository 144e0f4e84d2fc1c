"""The WSGI entry point. WSGI on purpose: sync Django under ASGI costs three to six times the CPU."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
application = get_wsgi_application()

"""Django's configuration: settings, URLs, the ASGI application, Celery."""

from pgqueue_admin.osproc import gc_freeze

gc_freeze.begin()  # every program imports this package first; apps.py ends it when all modules are loaded

"""How Django is put together: settings, urls, the ASGI application, Celery."""

from pgqueue_admin.osproc import gc_freeze

gc_freeze.begin()  # whatever starts is named or has its settings here; apps.py says when all is loaded

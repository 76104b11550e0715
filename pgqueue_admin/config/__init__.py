"""How Django is put together: settings, urls, the ASGI application, Celery."""

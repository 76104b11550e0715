"""All pages: each page module brings its own ``urlpatterns``."""

from importlib import import_module

from django.urls import URLPattern, URLResolver, path, register_converter

from pgqueue_admin.console import topics
from pgqueue_admin.console.paths import NameConverter
from pgqueue_admin.live import stream

register_converter(NameConverter, "name")
topics.register_all()

PAGES = (
    "health", "sign_in", "person", "overview", "queues", "unwatched", "queue", "alerts", "messages",
    "message", "body", "delayed", "subscriptions", "endpoints", "endpoint", "endpoint_acts", "fatal", "workers",
    "worker_log", "settings", "archive", "operations", "operation", "finder", "trends", "finished", "pipeline",
)  # fmt: skip

urlpatterns: list[URLPattern | URLResolver] = [path("live/", stream.live, name="live")]
for page in PAGES:
    urlpatterns += import_module(f"pgqueue_admin.console.pages.{page}").urlpatterns

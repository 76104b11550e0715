"""All pages: each page module brings its own ``urlpatterns``."""

from importlib import import_module

from django.urls import URLPattern, URLResolver, path, register_converter

from pgqueue_admin.console import live_topics
from pgqueue_admin.console.url_converters import NameConverter
from pgqueue_admin.live import stream

register_converter(NameConverter, "name")
live_topics.register_all()

PAGES = (
    "health",
    "account.sign_in",
    "account.preferences",
    "overview.views",
    "queues.views",
    "queues.unwatched",
    "queues.detail.views",
    "alerts.views",
    "messages.views",
    "messages.waiting_acts",
    "messages.payload_columns",
    "queues.send",
    "messages.detail_views",
    "messages.edit.views",
    "messages.copies",
    "messages.download",
    "leases.views",
    "delayed.views",
    "outbox.views",
    "subscriptions.views",
    "endpoints.views",
    "endpoints.detail_views",
    "endpoints.actions",
    "messages.crashing_message",
    "schedules.views",
    "schedules.actions",
    "workers.views",
    "workers.log_views",
    "settings.views",
    "settings.retry_rules",
    "settings.lease_rules",
    "masking.views",
    "scopes.views",
    "failures.views",
    "archive.views",
    "archive.export_views",
    "archive.suggestions",
    "bin.views",
    "operations.views",
    "operations.detail_views",
    "operations.edit_views",
    "crossings.views",
    "trials.views",
    "finder.views",
    "conversations.views",
    "trends.views",
    "audit.views",
    "saved_views.views",
    "history.messages",
    "history.views",
)

urlpatterns: list[URLPattern | URLResolver] = [path("live/", stream.live, name="live")]
for page in PAGES:
    urlpatterns += import_module(f"pgqueue_admin.console.{page}").urlpatterns

"""URL routing: Django admin, and the console for everything else, below the path of PUBLIC_URL."""

from django.contrib import admin
from django.urls import include, path

from pgqueue_admin.api import metrics
from pgqueue_admin.config.env import BELOW
from pgqueue_admin.console import health

_pages = [
    path("admin/", admin.site.urls),
    path("", include("pgqueue_admin.api.marks")),
    path("", include("pgqueue_admin.console.urls")),
]
# Probes and Prometheus query the process directly, without the path that a proxy adds.
urlpatterns = [*health.urlpatterns, *metrics.urlpatterns, path(BELOW[1:], include(_pages))]
handler404 = "pgqueue_admin.console.errors.not_found"

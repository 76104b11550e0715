"""The console's addresses as PUBLIC_URL=https://host/below/ has them."""

from django.urls import include, path

from pgqueue_admin.api import metrics
from pgqueue_admin.config import urls
from pgqueue_admin.console import health

urlpatterns = [*health.urlpatterns, *metrics.urlpatterns, path("below/", include(urls._pages))]
handler404 = urls.handler404

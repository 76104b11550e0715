"""``/metrics``: the newest figures for Prometheus, to this machine only. An unknown or stale figure is left out."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder

from pgqueue_admin.api.figures import ConsoleFigures
from pgqueue_admin.api.loopback import asks_directly

REFUSED = "Metrics are answered on this machine only: ask 127.0.0.1 or [::1], not through a proxy.\n"


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """OpenMetrics where the Accept header asks for it, else Prometheus' text format."""
    if not asks_directly(request):
        return HttpResponse(REFUSED, status=403, content_type="text/plain")
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(ConsoleFigures()), content_type=content_type)


urlpatterns = [path("metrics", metrics, name="metrics")]

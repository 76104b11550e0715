"""``/metrics``: the newest figures for Prometheus, for this machine or a token. Unknown or stale ones are left out."""

from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder

from pgqueue_admin.api import callers
from pgqueue_admin.api.callers import asks_directly
from pgqueue_admin.api.figures import ConsoleFigures

REFUSED = (
    "Metrics are answered on this machine: ask 127.0.0.1 or [::1], not through a proxy. Elsewhere they need a"
    " token that may read them: manage.py api_token makes one.\n"
)


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer in OpenMetrics if the Accept header asks for it, else in Prometheus' text format."""
    if not (asks_directly(request) or callers.holder(request, "metrics")):
        return HttpResponse(REFUSED, status=403, content_type="text/plain")
    encode, content_type = _encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(ConsoleFigures()), content_type=content_type)


def _encoder(accepted: str) -> tuple[Callable[[ConsoleFigures], bytes], str]:
    """Fall back to Prometheus' text format on an unreadable Accept header: the library fails on an invalid version."""
    try:
        return choose_encoder(accepted)
    except (TypeError, ValueError):
        return choose_encoder("")


urlpatterns = [path("metrics", metrics, name="metrics")]

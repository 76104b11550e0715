"""Identifies callers: by the token of a request, or as coming from this machine."""

from ipaddress import ip_address

from django.http import HttpRequest

from pgqueue_admin.models import ApiToken
from pgqueue_admin.services import api_tokens


# Only ``Authorization: Bearer …`` counts. Cookies do not: no page sends these requests for its reader.
def holder(request: HttpRequest, right: str) -> ApiToken | None:
    """The request's token if it is valid and has this right, else None."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return api_tokens.holder(token.strip(), right) if kind.lower() == "bearer" and token else None


# Callers on this machine, with no proxy between.
# Any of these means that a proxy forwarded the request: the peer's address is then only the proxy's.
_FORWARDED = ("FORWARDED", "VIA", "X_FORWARDED_FOR", "X_FORWARDED_HOST", "X_FORWARDED_PROTO", "X_REAL_IP")


def asks_directly(request: HttpRequest) -> bool:
    """Whether the peer's address is loopback and no header names a proxy. A socket without an address is not."""
    if any(f"HTTP_{name}" in request.META for name in _FORWARDED):
        return False
    try:
        peer = ip_address(request.META.get("REMOTE_ADDR") or "")
    except ValueError:
        return False
    return (getattr(peer, "ipv4_mapped", None) or peer).is_loopback

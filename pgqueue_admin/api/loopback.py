"""Who asks from this very machine, with no proxy between."""

from ipaddress import ip_address

from django.http import HttpRequest

# Any of these means that a proxy passes on what somebody else asked: its own address says nothing about them.
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

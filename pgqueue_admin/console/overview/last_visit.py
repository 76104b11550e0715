"""When this person last looked at Overview, in a browser cookie: what began since is new to them."""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from pgqueue_admin.console.parsing import parse_int

COOKIE = f"looked_{settings.INSTALLATION}"
STEP = timedelta(minutes=15)  # visits within one step get the same content, rendered once
UNKNOWN = timedelta(minutes=30)
LONGEST = timedelta(hours=24)


def since(request: HttpRequest, now: datetime) -> datetime:
    """The previous visit: at least 15 min ago, at most a day. Pages opened within 15 min are one visit."""
    began, last = _kept(request)
    before = last if last and now - last > STEP else began
    return rounded(min(max(before or now - UNKNOWN, now - LONGEST), now - STEP))


def remember(request: HttpRequest, response: HttpResponse, now: datetime) -> None:
    began, last = _kept(request)
    before = last if last and now - last > STEP else began
    kept = f"{int((before or now - UNKNOWN).timestamp())}.{int(now.timestamp())}"
    here, secure = reverse("overview"), settings.SESSION_COOKIE_SECURE
    response.set_cookie(COOKIE, kept, max_age=LONGEST, path=here, httponly=True, samesite="Lax", secure=secure)


def rounded(at: datetime) -> datetime:
    seconds = int(STEP.total_seconds())
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, UTC)


def said(at: datetime) -> str:
    """The time as the argument of a topic."""
    return str(int(at.timestamp()))


def read(text: str, now: datetime) -> datetime:
    """Parse a topic's argument; a time outside the last day counts as unknown."""
    at = _instant(text)
    return rounded(at if at and now - LONGEST - STEP <= at <= now else now - UNKNOWN)


def _kept(request: HttpRequest) -> tuple[datetime | None, datetime | None]:
    began, _, last = request.COOKIES.get(COOKIE, "").partition(".")
    return _instant(began), _instant(last)


def _instant(text: str) -> datetime | None:
    seconds = parse_int(text, 2**32)
    return datetime.fromtimestamp(seconds, UTC) if seconds else None

"""How long a sign-in lasts: so many hours in all, and so many minutes after the last page or act of its person."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase, UpdateError
from django.db import Error
from django.http import HttpRequest
from django.utils import timezone

BEGAN = "began"
POLLS = "going-on"  # the id of what asks again by itself while something goes on


def prolong(request: HttpRequest) -> None:
    """For a page of somebody who is signed in. Its stream, and what it asks for by itself, are no activity."""
    if not _by_itself(request):
        _keep_until(request.session, timezone.now())


def _by_itself(request: HttpRequest) -> bool:
    is_stream = request.resolver_match and request.resolver_match.url_name == "live"
    return bool(is_stream) or request.method == "HEAD" or request.headers.get("HX-Trigger") == POLLS


def _keep_until(session: SessionBase, now: datetime) -> None:
    about = settings.PGQUEUE
    idle = timedelta(minutes=about["IDLE_MINUTES"])
    began = datetime.fromisoformat(session[BEGAN]) if BEGAN in session else now
    until = min(now + idle, began + timedelta(hours=about["SESSION_HOURS"]))
    if BEGAN in session and abs(until - session.get_expiry_date()) < idle / 60:
        return  # a page each second is not a row each second
    session[BEGAN] = began.isoformat()
    session.set_expiry(until)
    _save(session)


def _save(session: SessionBase) -> None:
    """Here, not after the page: one is shown as well where the console's database takes no writes now."""
    try:
        session.save()
    except (Error, UpdateError):  # or it has ended meanwhile, in another tab
        session.modified = False

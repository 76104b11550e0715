"""How long a sign-in lasts: so many hours in all, and so many minutes after the person's last page or action."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase, UpdateError
from django.db import Error
from django.http import HttpRequest
from django.utils import timezone

BEGAN = "began"
POLLS = "going-on"  # the id of the element that polls while something is in progress


def prolong(request: HttpRequest) -> None:
    """Prolong a signed-in person's session on each page. Its stream and its polling do not count as activity."""
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
        return  # a page a second must not write a row a second
    session[BEGAN] = began.isoformat()
    session.set_expiry(until)
    _save(session)


def _save(session: SessionBase) -> None:
    """Save now, not after the page: the page is shown even while the console's database is read-only."""
    try:
        session.save()
    except (Error, UpdateError):  # or it ended meanwhile, in another tab
        session.modified = False

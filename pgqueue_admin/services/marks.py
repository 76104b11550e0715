"""Stores marks that programs post, within limits: a token must not flood the console."""

from datetime import datetime, timedelta
from urllib.parse import urlsplit

from pgqueue_admin.models import ApiToken, PostedMark, database_clock
from pgqueue_admin.models.posted_mark import LONGEST

MOST_AN_HOUR = 120
OLDEST = timedelta(days=7)
AHEAD = timedelta(minutes=5)  # clocks of hosts differ
LONGEST_LINK = 500


class MarkRefused(Exception):
    """The mark was not stored; the message says why."""


class TooManyMarks(MarkRefused):
    """The token has reached its limit of marks an hour."""


def post(token: ApiToken, text: object, at: object = None, link: object = "") -> PostedMark:
    """``at``: ISO 8601 with an offset; default: now. Raises MarkRefused."""
    now = database_clock.now()
    said, when, where = _text(text), _time(at, now), _link(link)
    if PostedMark.objects.filter(who=token.name, posted_at__gt=now - timedelta(hours=1)).count() >= MOST_AN_HOUR:
        raise TooManyMarks(f"{token.name} has posted {MOST_AN_HOUR} marks within an hour, which is the most.")
    return PostedMark.objects.create(at=when, who=token.name, text=said, link=where)


def prune(kept_for: timedelta) -> int:
    """Delete older marks; return how many."""
    gone, _ = PostedMark.objects.filter(posted_at__lt=database_clock.now() - kept_for).delete()
    return gone


def _text(text: object) -> str:
    said = text.strip() if isinstance(text, str) else ""
    if not said or len(said) > LONGEST or not said.isprintable():
        raise MarkRefused(f"text: a line of 1 to {LONGEST} printable characters, such as “Sales 3.4.1”.")
    return said


def _time(at: object, now: datetime) -> datetime:
    if at is None:
        return now
    try:
        when = datetime.fromisoformat(at if isinstance(at, str) else "")
        if when.tzinfo and now - OLDEST <= when <= now + AHEAD:
            return when
    except (ValueError, OverflowError):
        pass
    raise MarkRefused(
        "at: a time with its offset, such as 2026-11-21T14:02:00Z, of the last 7 days; leave it out for now."
    )


def _link(link: object) -> str:
    if link in ("", None):
        return ""
    if isinstance(link, str) and len(link) <= LONGEST_LINK and link.isprintable() and " " not in link:
        try:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https") and parts.hostname:
                return link
        except ValueError:
            pass
    raise MarkRefused(f"link: an address that begins with https:// or http://, of at most {LONGEST_LINK} characters.")

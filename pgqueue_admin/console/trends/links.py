"""From a figure to its messages: the archive's search, narrowed as Trends is. Only what died lies there."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from django.urls import reverse

from pgqueue_admin.pipeline.trends import Asked


def died(asked: Asked, at: datetime, step: timedelta) -> str:
    """The failed messages of one step."""
    return _archive([*narrowed(asked), f"since:{_iso(at)}", f"until:{_iso(at + step)}"])


def pattern(asked: Asked) -> str:
    """The same, with SINCE and UNTIL for a drawing to fill in."""
    return _archive([*narrowed(asked), "since:SINCE", "until:UNTIL"])


def caused(asked: Asked, exception: str) -> str:
    """Those of one error in the whole window."""
    window = [f"since:{_iso(asked.since)}", f"until:{_iso(asked.until)}"]
    return _archive([f"error:{_term(exception)}", *narrowed(asked), *window])


def narrowed(asked: Asked) -> list[str]:
    """Queue, endpoint and type as terms of the search; names with blanks in quotes."""
    named = {name: getattr(asked, name) for name in ("queue", "endpoint", "type")}
    return [f"{name}:{_term(value)}" for name, value in named.items() if value]


def _term(value: str) -> str:
    return f'"{value}"' if " " in value and '"' not in value else value


def _archive(terms: list[str]) -> str:
    return f"{reverse('archive')}?q={quote(' '.join(terms), safe='')}"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

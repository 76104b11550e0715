"""From a figure to its messages, narrowed as Trends is: what died lies in the archive, all else in history's files."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

from django.urls import reverse

from pgqueue_admin.pipeline.trends import NAMES, Asked


def died(asked: Asked, at: datetime, step: timedelta) -> str:
    """The failed messages of one step."""
    return _archive([*narrowed(asked), f"since:{_iso(at)}", f"until:{_iso(at + step)}"])


def pattern(asked: Asked) -> str:
    """The same, with SINCE and UNTIL for a drawing to fill in."""
    return _archive([*narrowed(asked), "since:SINCE", "until:UNTIL"])


def finished(asked: Asked, at: datetime, step: timedelta) -> str:
    """The messages of one step that succeeded."""
    return _history(asked, _iso(at), _iso(at + step), "success")


def finished_pattern(asked: Asked) -> str:
    """All messages of a step, with SINCE and UNTIL for a drawing to fill in."""
    return _history(asked, "SINCE", "UNTIL")


def caused(asked: Asked, exception: str) -> str:
    """Those of one error in the whole window."""
    window = [f"since:{_iso(asked.since)}", f"until:{_iso(asked.until)}"]
    return _archive([f"error:{_term(exception)}", *narrowed(asked), *window])


def narrowed(asked: Asked) -> list[str]:
    """Queue, endpoint and type as terms of the search; names with blanks in quotes."""
    return [f"{name}:{_term(value)}" for name, value in _named(asked).items()]


def _named(asked: Asked) -> dict[str, str]:
    return {name: value for name in NAMES if (value := getattr(asked, name))}


def _term(value: str) -> str:
    return f'"{value}"' if " " in value and '"' not in value else value


def _archive(terms: list[str]) -> str:
    return f"{reverse('archive')}?q={quote(' '.join(terms), safe='')}"


def _history(asked: Asked, since: str, until: str, result: str = "") -> str:
    query = {"since": since, "until": until, **_named(asked), "result": result}
    return f"{reverse('finished')}?{urlencode({name: value for name, value in query.items() if value})}"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

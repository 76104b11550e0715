"""Links from a figure to exactly its messages: failed ones in the archive while kept, all in history's files."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

from django.conf import settings
from django.urls import reverse

from pgqueue_admin.archive import search_query
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.history.rollups.name_limits import may_be_cut
from pgqueue_admin.history.rollups.queries import NAMES, TrendQuery
from pgqueue_admin.history.storage.message_lookup import UNSUCCESSFUL
from pgqueue_admin.models import database_clock

FAILED = (f"result:{UNSUCCESSFUL}", "kind:message")  # what history counts as failed: it reads no control messages


def died(asked: TrendQuery, at: datetime, step: timedelta) -> str:
    """Messages that did not succeed in one step; in the lease queue also rejected ones and lost locks."""
    since, until = _iso(at), _iso(at + step)
    return _history(asked, since, until, UNSUCCESSFUL) if is_pruned(at) else _died(asked, since, until)


def pattern(asked: TrendQuery) -> str:
    """The same, with SINCE and UNTIL for a chart to fill in."""
    return _died(asked, "SINCE", "UNTIL")


def pruned_pattern(asked: TrendQuery) -> str:
    """The same, for a time of which the archive no longer keeps everything."""
    return _history(asked, "SINCE", "UNTIL", UNSUCCESSFUL)


def kept_from() -> datetime | None:
    """Since when the archive has all that died; None: it keeps everything."""
    days = settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]
    return database_clock.now() - timedelta(days=days) if days else None


def is_pruned(at: datetime) -> bool:
    kept = kept_from()
    return kept is not None and at < kept


def finished(asked: TrendQuery, at: datetime, step: timedelta) -> str:
    """The messages of one step that succeeded."""
    return _history(asked, _iso(at), _iso(at + step), "success")


def finished_pattern(asked: TrendQuery) -> str:
    """All messages of a step, with SINCE and UNTIL for a chart to fill in."""
    return _history(asked, "SINCE", "UNTIL")


def took(asked: TrendQuery, at: datetime, step: timedelta, measure: str, band: int) -> str:
    """The messages of one cell of the heat map."""
    return _history(asked, _iso(at), _iso(at + step), m=measure, band=str(band))


def took_pattern(asked: TrendQuery, measure: str) -> str:
    """The same, with SINCE, UNTIL and BAND for a chart to fill in."""
    return _history(asked, "SINCE", "UNTIL", m=measure, band="BAND")


def caused(asked: TrendQuery, exception: str) -> str:
    """All messages of one error in the window, to retry; empty if the archive lacks some or cannot find them."""
    window = [f"since:{_iso(asked.since)}", f"until:{_iso(asked.until)}"]
    if is_pruned(asked.since) or asked.may_be_several or may_be_cut(exception):
        return ""
    return _archive([search_query.exactly("error", exception), *FAILED, *narrowed(asked), *window])


def fingerprinted(asked: TrendQuery, fingerprint: str) -> str:
    """Messages of one fingerprint in the whole window: its error may have other fingerprints."""
    return _history(asked, _iso(asked.since), _iso(asked.until), UNSUCCESSFUL, fingerprint=fingerprint)


def narrowed(asked: TrendQuery) -> list[str]:
    """Queue, endpoint and type as search terms that match these names and no others."""
    return [
        search_query.died_in(value) if name == "queue" else search_query.exactly(name, value)
        for name, value in _named(asked).items()
    ]


def _named(asked: TrendQuery) -> dict[str, str]:
    return {name: value for name in NAMES if (value := getattr(asked, name))}


def _archive(asked: list[str]) -> str:
    return f"{reverse('archive')}?q={quote(' '.join(asked), safe='')}"


def _died(asked: TrendQuery, since: str, until: str) -> str:
    """Names last, here too. The archive's search cannot tell names cut by figures from shorter ones that begin so."""
    if asked.may_be_several:
        return _history(asked, since, until, UNSUCCESSFUL)
    return _archive([*FAILED, f"since:{since}", f"until:{until}", *narrowed(asked)])


def _history(asked: TrendQuery, since: str, until: str, result: str = "", **more: str) -> str:
    """Names come last: a chart fills in the first BAND, SINCE and UNTIL that it finds, and a name may contain these.

    Empty under a queue scope: the files are of all queues together.
    """
    if not addresses.is_open("finished"):
        return ""
    query = {"since": since, "until": until, "result": result, **more, **_named(asked)}
    return f"{reverse('finished')}?{urlencode({name: value for name, value in query.items() if value})}"


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

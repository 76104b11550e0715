"""A failure's row, and the cells that pages and their live topic share.

The row uses no template: rendering fifty rows of a dozen cells took half of the page's time.
"""

from collections.abc import Callable, Sequence
from html import escape

from django.utils.safestring import SafeString

from pgqueue_admin.console import components, url_converters
from pgqueue_admin.console.failures.rows import FailureRow
from pgqueue_admin.models.failure_group import FailureWords

PLACES = 2  # queues that a row names
FRAME, MESSAGE, NOTE, TICKET = 80, 110, 160, 40  # characters of each


def state(row: FailureRow) -> SafeString:
    """The state, with the result of retries."""
    return SafeString(components.state(row.word, row.state) + _sub(escape(row.retried)))


def dead(row: FailureRow) -> SafeString:
    return SafeString(f"<b>{count(row)}</b>")


def count(row: FailureRow) -> SafeString:
    return components.figure(row.figures.dead)


def died_recently(row: FailureRow) -> SafeString:
    return SafeString(f"{components.figure(row.figures.died_lately)} died in the last 10 min")


def last(row: FailureRow) -> SafeString:
    return SafeString(f"last {components.ago(row.figures.last_at)}")


LIVE: dict[str, Callable[[FailureRow], SafeString]] = {
    "dead": dead, "count": count, "died_recently": died_recently, "last": last, "state": state,
}  # fmt: skip


def owner(known: FailureWords | None) -> SafeString:
    """The owner and the ticket, which is a link if it is a URL."""
    whose = components.marked(known.owner) if known and known.owner else '<span class="faint">nobody</span>'
    return SafeString(whose + _ticket(known))


def _ticket(known: FailureWords | None) -> str:
    if not known or not known.ticket:
        return ""
    said = components.truncate(known.ticket, TICKET)
    if not known.ticket_url:
        return f' <span class="sub wrap-any">{components.marked(said)}</span>'
    shown = components.seen(said)
    link = f'<a href="{escape(known.ticket_url)}" rel="noreferrer noopener">{shown}</a>'
    return f' <span class="sub wrap-any">{link}</span>'


def acknowledged_until(known: FailureWords) -> SafeString:
    """Until when the failure is acknowledged, and by whom."""
    until = known.acknowledged_until
    end = components.when(until) if until else f"{components.figure(known.acknowledged_to)} dead"
    return SafeString(f'until {end} <span class="sub">{components.seen(known.acknowledged_by)}</span>')


def row(of: FailureRow, *, is_picked: bool, is_followed: bool) -> SafeString:
    """A row of the list. ``is_picked``: with a checkbox; ``is_followed``: the page's stream updates its figures."""
    digest, url = escape(of.fingerprint), url_converters.failure(of.fingerprint)

    def live(name: str) -> str:
        return f' data-live="f{digest}.{name}"' if is_followed else ""

    tone = f' data-live-class="f{digest}.tone"' if is_followed else ""
    box = f'name="f" value="{digest}" form="chosen" aria-label="Select {escape(of.name)}, {of.dead} dead"'
    pick = f'<td role="cell" class="pick"><input type="checkbox" {box}></td>' if is_picked else ""
    seen = f'{components.when(of.first_at)}<span class="sub"{live("last")}>{last(of)}</span>'
    return SafeString(
        f'<tr role="row" class="{of.tone}" id="f{digest}"{tone}>{pick}'
        f'<th role="rowheader" scope="row" class="name full">{_cause(of, url)}</th>'
        f'<td role="cell" data-l="State"{live("state")}>{state(of)}</td>'
        f'<td role="cell" class="num"{live("dead")} data-l="Dead">{dead(of)}</td>'
        f'<td role="cell" class="mid drop">{of.spark}</td>'
        f'<td role="cell" class="nowrap" data-l="First, last">{seen}</td>'
        f'<td role="cell" class="mid drop">{_types(of.types)}</td>'
        f'<td role="cell" data-l="Owner">{owner(of.known)}{_teams(of)}</td>'
        f'<td role="cell" class="full lo" data-l="Note">{_note(of.known)}</td>'
        f'<td role="cell" class="full" data-l="Acknowledged">{_acknowledged(of, url)}</td></tr>\n'
    )


def _cause(of: FailureRow, url: str) -> str:
    frame, said = of.cause.frame, of.cause.said
    places = of.addresses
    where = ", ".join(components.name(each.table) for each in places[:PLACES])
    others = " and others" if len(places) > PLACES else ""
    at = f", at {components.name(components.truncate(frame, FRAME))}" if frame else ""
    message = components.marked(components.truncate(said, MESSAGE))
    return (
        f'<a href="{url}">{components.name(of.name)}</a> <span class="sub">{where}{others}{at}</span>'
        f' <span class="sub mono wrap-any" dir="auto">{message}</span>'
    )


def _types(counted: Sequence[tuple[str, str]]) -> str:
    said = [f">{components.name(name)} {escape(count)}</span>" for name, count in counted]
    return "".join(f'<span class="sub"{each}' if place else f"<span{each}" for place, each in enumerate(said))


def _teams(of: FailureRow) -> str:
    said = [(team, words.owner) for team, words in of.teams if words.owner]
    marked = [f"{components.marked(team)}: {components.marked(whose)}" for team, whose in said]
    return "".join(f' <span class="sub wrap-any">{each}</span>' for each in marked)


def _note(known: FailureWords | None) -> str:
    if not known or not known.note:
        return '<span class="faint">none</span>'
    said = components.marked(components.truncate(known.note, NOTE))
    by = f"{components.seen(known.noted_by)}, {components.when(known.noted_at)}"
    return f'<span class="wrap-any" dir="auto">{said}</span> <span class="sub">{by}</span>'


def _acknowledged(of: FailureRow, url: str) -> str:
    if of.acknowledged and of.known:
        return acknowledged_until(of.known)
    return f'<a href="{url}#acknowledge">Acknowledge…</a>'


def _sub(safe: str) -> str:
    return f'<span class="sub">{safe}</span>' if safe else ""

"""The sentences that open pages about endpoints: one verdict for Overview, Workers, Endpoints and a queue's page."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import components
from pgqueue_admin.formatting import escape_invisible, names
from pgqueue_admin.formatting.numbers import format_figure, pluralize
from pgqueue_admin.models import processes
from pgqueue_admin.models.endpoint_standings import Standing, State

MOST = 3  # sentences below the first one
HALTED = {State.STOPPED: "stopped", State.PAUSED: "paused"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """``sentence`` is markup if it contains a time; ``title`` is the same text without it."""

    tone: str  # crit, warn, paused, good, blind
    sentence: str
    title: str
    rest: str = ""

    @property
    def spoken(self) -> str:
        """The sentence without a time, since a time is markup."""
        return self.title if isinstance(self.sentence, SafeString) else self.sentence


def halted(standing: Standing) -> SafeString:
    """``Orders is stopped (by admin, 12:45); 4 wait``. Who and when come from the audit."""
    by = f"by {escape_invisible.plain(standing.who)}" if standing.who else ""
    at = components.when(standing.at) if standing.at else ""
    act = format_html(" ({}{}{})", by, ", " if by and at else "", at) if by or at else ""
    name = escape_invisible.plain(standing.endpoint.name)
    return format_html("{} is {}{}{}", name, HALTED[standing.state], act, _waiting(standing))


def plain(standing: Standing) -> str:
    """The same without who and when, for a title and for screen readers."""
    return f"{escape_invisible.plain(standing.endpoint.name)} is {HALTED[standing.state]}{_waiting(standing)}"


def _waiting(standing: Standing) -> str:
    if not standing.waiting:
        return ""
    return f"; {format_figure(standing.waiting, standing.how)} {'waits' if standing.waiting == 1 else 'wait'}"


def of_endpoints(standings: Sequence[Standing]) -> Verdict | None:
    """The verdict on the endpoints, causes first; None while all of them run."""
    causes = [(halted(each), plain(each)) for each in standings if each.is_cause]
    short, cut = _short(standings), _cut(standings)
    others = [(halted(each), plain(each)) for each in standings if each.state in HALTED and not each.is_cause]
    said = [*causes, *short, *cut, *others]
    if not said:
        return None
    tone = "crit" if causes or short or cut else "warn" if _is_stopped(standings) else "paused"
    (sentence, title), *more = said
    return Verdict(tone, sentence, title, _rest([each for each, _ in more], standings))


def _is_stopped(standings: Sequence[Standing]) -> bool:
    return any(each.state is State.STOPPED for each in standings)


def _rest(said: Sequence[SafeString], standings: Sequence[Standing]) -> SafeString:
    left = len(said) - MOST
    more = [SafeString(f"{pluralize(left, 'more endpoint does', 'more endpoints do')} not run")] if left > 0 else []
    runs = [] if any(each.state is State.SHORT for each in standings) else [SafeString(_how_many_run(standings))]
    return format_html("{}.", components.joined([*said[:MOST], *more, *runs], ". "))


def _how_many_run(standings: Sequence[Standing]) -> str:
    have, want = _processes(standings)
    return (
        f"{have:,} of {pluralize(want, 'wanted process runs', 'wanted processes run')}"
        if want
        else "No process is wanted"
    )


def _processes(standings: Sequence[Standing]) -> tuple[int, int]:
    return sum(each.team.filled for each in standings), sum(each.team.want for each in standings)


def _short(standings: Sequence[Standing]) -> list[tuple[SafeString, str]]:
    short = [each.team for each in standings if each.state is State.SHORT]
    if not short:
        return []
    missing = "too few processes" if any(team.have for team in short) else "no process"
    verb = "has" if len(short) == 1 else "have"
    have, want = _processes(standings)
    names_of = names.listed([escape_invisible.plain(team.endpoint.name) for team in short])
    said = f"{names_of} {verb} {missing}; {have} of {want} run"
    return [(format_html("{}", said), said)]


def _cut(standings: Sequence[Standing]) -> list[tuple[SafeString, str]]:
    cut = [escape_invisible.plain(each.endpoint.name) for each in standings if each.team.breakers]
    said = f"Circuit breakers of {names.listed(cut)} are open"
    return [(format_html("{}", said), said)] if cut else []


def line(verdict: Verdict) -> SafeString:
    """The whole verdict below a page's name, behind its icon if something is wrong."""
    if verdict.tone == "good":
        return format_html("{}.", verdict.sentence)
    tone, shape = f"{verdict.tone}-t", components.icon(components.SHAPE_OF_VERDICT[verdict.tone])
    return format_html('<b class="{}">{} {}.</b> {}', tone, shape, verdict.sentence, verdict.rest)


def all_run(teams: Sequence[processes.EndpointProcesses]) -> str:
    want = sum(each.want for each in teams)
    if want < 2:
        return "The one wanted process runs" if want else "No process is wanted"
    return f"All {pluralize(want, 'process', 'processes')} run"

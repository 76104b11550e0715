"""How many queues are within target, off it, paused, or not read: every headline counts by this one function."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgqueue_admin.console.board.rows import Row
from pgqueue_admin.monitor import judge
from pgqueue_admin.wording.figures import counted


@dataclass(frozen=True, slots=True)
class Tally:
    """Of ``of`` queues that were ever looked at; ``unknown``: read, and one figure of it cannot be seen."""

    of: int
    within: int
    off: int
    paused: int
    unread: int
    unknown: int

    @property
    def rest(self) -> list[str]:
        """What is neither within target nor off it, in words."""
        said = ((self.unread, "not read"), (self.paused, "paused"), (self.unknown, "of unknown age"))
        return [f"{number:,} {words}" for number, words in said if number]

    @property
    def sentence(self) -> str:
        """Of the list of queues."""
        if self.of and self.within == self.of:
            return "All within target"
        off = [f"{counted(self.off, 'queue')} off target"] if self.off else []
        return ", ".join([*off, *self.rest, f"{self.within:,} within target"])


def tally(rows: Iterable[Row]) -> Tally:
    verdicts = [row.verdict for row in measured(rows)]
    states = [verdict.state for verdict in verdicts]
    unread = sum(verdict.why == judge.UNREAD for verdict in verdicts)
    return Tally(
        of=len(states),
        within=states.count(judge.State.OK),
        off=states.count(judge.State.CRITICAL),
        paused=states.count(judge.State.PAUSED),
        unread=unread,
        unknown=states.count(judge.State.WARNING) - unread,
    )


def measured(rows: Iterable[Row]) -> Sequence[Row]:
    """What was never measured is within no target."""
    return [row for row in rows if row.latest]

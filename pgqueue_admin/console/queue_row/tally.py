"""How many queues are within target, off it, paused, or not read: every headline counts with this function."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.monitor import targets


@dataclass(frozen=True, slots=True)
class Tally:
    """``of``: queues that were ever sampled; ``unknown``: read, but one figure of it cannot be seen."""

    of: int
    within: int
    off: int
    paused: int
    unread: int
    unknown: int

    @property
    def rest(self) -> list[str]:
        """Queues neither within target nor off it, in words."""
        said = ((self.unread, "not read"), (self.paused, "paused"), (self.unknown, "of unknown age"))
        return [f"{number:,} {words}" for number, words in said if number]

    @property
    def sentence(self) -> str:
        """For the list of queues."""
        if self.of and self.within == self.of:
            return "All within target"
        off = [f"{pluralize(self.off, 'queue')} off target"] if self.off else []
        return ", ".join([*off, *self.rest, f"{self.within:,} within target"])


def tally(rows: Iterable[QueueRow]) -> Tally:
    verdicts = [row.verdict for row in measured(rows)]
    states = [verdict.state for verdict in verdicts]
    unread = sum(verdict.why == targets.UNREAD for verdict in verdicts)
    return Tally(
        of=len(states),
        within=states.count(targets.TargetState.OK),
        off=states.count(targets.TargetState.CRITICAL),
        paused=states.count(targets.TargetState.PAUSED),
        unread=unread,
        unknown=states.count(targets.TargetState.WARNING) - unread,
    )


def measured(rows: Iterable[QueueRow]) -> Sequence[QueueRow]:
    """Rows with a sample: a queue that was never measured is within no target."""
    return [row for row in rows if row.latest]

"""One crossing as pages say it: from where to where, what was asked, what answered, and since when."""

from dataclasses import dataclass
from functools import cached_property

from pgqueue_admin.archive.crossings import Crossing
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import crossings as crossing_words
from pgqueue_admin.services.operations import queries
from pgqueue_admin.services.operations.crossings import PendingCrossing


@dataclass(frozen=True)
class CrossingRow:
    """``operation``: of this console; None where it is of another, or of none."""

    pending: PendingCrossing
    operation: int | None

    @property
    def crossing(self) -> Crossing:
        return self.pending.crossing

    @property
    def queues(self) -> list[tuple[Address, list[str]]]:
        return list(self.pending.queues.items())

    @property
    def is_undecided(self) -> bool:
        return self.crossing.not_known is not None

    @property
    def origin(self) -> str:
        """Of what goes there."""
        if self.pending.is_move:
            return f"another queue of {self.crossing.alias}"
        return "typed by hand" if self.pending.is_typed else "the archive"

    @property
    def title(self) -> str:
        return crossing_words.asked(self.pending.number, self.crossing.takes_in, self.crossing.alias)

    @property
    def state(self) -> tuple[str, str]:
        """The word, and how it is drawn."""
        if self.is_undecided:
            return "a person decides", "warning"
        return ("is being asked", "waiting") if self.crossing.mark else ("has not left", "waiting")

    @cached_property
    def asked(self) -> str:
        return self.pending.asked

    @property
    def answer(self) -> str:
        alias = self.crossing.alias
        if self.crossing.not_known:
            return self.crossing.not_known
        if self.crossing.mark:
            return f"Nothing final yet: {alias} is asked each minute, until it says whether that was committed."
        return f"Nothing was asked: nothing can have been committed in {alias}, and it is taken back within a minute."

    @property
    def effects(self) -> dict[str, str]:
        """What each decision does."""
        of = self.pending
        if of.takes_back:
            return {each: crossing_words.effect_of_call_back(each == "arrived") for each in crossing_words.DECISIONS}
        return {
            each: crossing_words.effect(self.crossing.takes_in, of.is_typed, each == "arrived", of.is_move)
            for each in crossing_words.DECISIONS
        }


def of(found: list[PendingCrossing]) -> list[CrossingRow]:
    own = queries.started_here(each.crossing.operation for each in found)
    return [CrossingRow(each, each.crossing.operation if each.crossing.operation in own else None) for each in found]

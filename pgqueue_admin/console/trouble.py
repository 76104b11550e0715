"""What a page says when the queue database does not give what was asked: the part fails alone, never the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pgqueue_admin.dialects import Connection, errors
from pgqueue_admin.records.source import source

T = TypeVar("T")

_NEXT = {
    errors.DatabaseDown: "Nothing can be changed until it is back; nothing was lost. Reload to try again.",
    errors.TimedOut: "Nothing was changed. Reload to try again, or narrow what is asked for.",
    errors.NotPermitted: "Ask whoever grants rights in that database for SELECT on it.",
    errors.TableMissing: "It was there when the page was asked for, and is not now.",
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """``kind``: down, slow, forbidden, gone, or other."""

    kind: str
    sentence: str
    detail: str
    next: str

    @property
    def ends(self) -> bool:
        """Whether the detail ends as a sentence does: a driver's words seldom do."""
        return self.detail.endswith((".", "!", "?", ":"))


def read(work: Callable[[Connection], T]) -> tuple[T | None, Trouble | None]:
    """What ``work`` read, or why it could not."""
    try:
        with source().reading() as connection:
            return work(connection), None
    except errors.DatabaseError as error:
        return None, of(error)


def of(error: errors.DatabaseError) -> Trouble:
    kinds = {errors.DatabaseDown: "down", errors.TimedOut: "slow", errors.NotPermitted: "forbidden"}
    kinds |= {errors.TableMissing: "gone", errors.SchemaMissing: "gone"}
    detail = error.detail.splitlines()[0] if error.detail else ""
    return Trouble(kinds.get(type(error), "other"), error.sentence, detail, _NEXT.get(type(error), ""))

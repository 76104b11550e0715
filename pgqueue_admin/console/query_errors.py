"""What a page shows when a query of the queue database fails: only that part fails, never the page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pgqueue_admin.console import components
from pgqueue_admin.dialects import Address, Connection, errors
from pgqueue_admin.models.queue_database import QueueDatabase, database_of, queue_database
from pgqueue_admin.monitor import lock_holders
from pgqueue_admin.monitor.lock_holders import Holder

T = TypeVar("T")

_AGAIN = "Nothing was changed, and other pages go on. Reload to look again."
_NEXT = {
    errors.DatabaseDown: "Nothing can be changed until it is back; nothing was lost. Reload to try again.",
    errors.TimedOut: "Nothing was changed. Reload to try again, or narrow what is asked for.",
    errors.Busy: _AGAIN,
    errors.Locked: _AGAIN,
    errors.NotPermitted: "Ask whoever grants rights in that database for SELECT on it.",
    errors.TableMissing: "It was there when the page was asked for, and is not now.",
}


@dataclass(frozen=True, slots=True)
class QueryError:
    """``kind``: down, slow, busy, forbidden, gone, or other."""

    kind: str
    sentence: str
    detail: str
    next: str

    @property
    def ends(self) -> bool:
        """Whether the detail ends with punctuation: a driver's message seldom does."""
        return self.detail.endswith((".", "!", "?", ":"))

    @property
    def status(self) -> int:
        """The HTTP status of a page that consists only of what could not be read."""
        return {"gone": 404, "busy": 503}.get(self.kind, 200)


def read(
    work: Callable[[Connection], T],
    of: Address | None = None,
    *,
    searching: bool = False,
    database: QueueDatabase | None = None,
) -> tuple[T | None, QueryError | None]:
    """The result of ``work``, or why it failed. ``of``: the queue it reads; ``searching``: it searches texts.

    ``database``: where it reads; None: the database of ``of``, or the first one.
    """
    try:
        with (database or _database(of)).read_session(of, searching=searching) as connection:
            return work(connection), None
    except errors.DatabaseError as error:
        return None, query_error(error, of)


def _database(of: Address | None) -> QueueDatabase:
    return database_of(of) if of else queue_database()


def query_error(error: errors.DatabaseError, of: Address | None = None) -> QueryError:
    """After a timeout on a queue, the error also names who holds its lock."""
    holder = _holder(of) if of and isinstance(error, errors.TimedOut | errors.Busy) else None
    if of and holder:
        return QueryError(
            "busy", f"{of.table} is busy: it is locked, and this page waits no longer.", _who(holder), _AGAIN
        )
    return plain(error)


def plain(error: errors.DatabaseError) -> QueryError:
    kinds: dict[type[errors.DatabaseError], str] = {
        errors.DatabaseDown: "down",
        errors.TimedOut: "slow",
        errors.Locked: "busy",
        errors.Busy: "busy",
        errors.NotPermitted: "forbidden",
        errors.NotLookedInto: "forbidden",
        errors.TableMissing: "gone",
        errors.SchemaMissing: "gone",
    }
    detail = error.detail.splitlines()[0] if error.detail else ""
    return QueryError(kinds.get(type(error), "other"), error.sentence, detail, _NEXT.get(type(error), ""))


def _holder(of: Address) -> Holder | None:
    try:
        with database_of(of).probe_session() as connection:
            return lock_holders.of(connection, of)
    except errors.DatabaseError:
        return None


def _who(holder: Holder) -> str:
    if holder.pid is None:
        return (
            f"Its lock is held by a prepared transaction{_since(holder)}: COMMIT PREPARED or ROLLBACK PREPARED ends it."
        )
    named = " of ".join(filter(None, [holder.application, f"user {holder.user}" if holder.user else ""]))
    who = f"process {holder.pid} of the server{f' ({named})' if named else ''}{_since(holder)}"
    if holder.has_it:
        return f"Its lock is held by {who}: it is free once that transaction ends."
    return f"Before this page {who} waits for its lock, behind somebody who uses the table."


def _since(holder: Holder) -> str:
    return f", whose transaction began {components.sentence_time(holder.since)}" if holder.since else ""

"""Acts on messages waiting in another database: all of one act go in one crossing (decision 032)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from pgqueue_admin.archive.crossing_in import TakingIn
from pgqueue_admin.archive.held_row import SeenRow, others_code
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import TakenRow
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.waiting_store import MovingStore
from pgqueue_admin.models.queue_database import QueueDatabase, queue_database
from pgqueue_admin.services import audit_intents
from pgqueue_admin.services.operations import crossings

IN_HAND = "It is being received, or was, since you looked."


@dataclass(frozen=True, slots=True)
class ActOutcome:
    """Result for one message. ``why``: set unless it is *done*. *unknown*: the database went away during the act."""

    seen: SeenRow
    result: Literal["done", "skipped", "failed", "unknown"]
    why: str = ""
    archive_id: int | None = None


def act(
    name: str,
    database: QueueDatabase,
    seen: Sequence[SeenRow],
    who: str,
    target: Address | None,
    entry: dict[str, Any],
) -> list[ActOutcome]:
    """Discard, move out or move each message, in the order given, or cancel or run delayed ones.
    ``target``: their queue there. ``entry``: of the audit. Raises DatabaseError: nothing was done to any then.
    """
    act = _Act(database, seen, entry, target)
    try:
        if target:
            moved = crossings.move(database, (act.queue, target), act.rows, who, act.hold, act.intend)
            return act.outcomes(refused={row.id: why for row, why in moved.refused.items()})
        meant = TakingIn(database.alias, who, restores=name in ("discard", "cancel"))
        _, archived = crossings.take_out(database, act.queue, meant, act.hold, act.intend)
        return act.outcomes([each.archive_id for each in archived])
    except DatabaseError as error:
        return act.after(error)


class _Act:
    """Locked rows of what a person saw, and their outcomes."""

    def __init__(
        self, database: QueueDatabase, seen: Sequence[SeenRow], entry: dict[str, Any], target: Address | None
    ) -> None:
        self.queue = seen[0].table
        self._database, self._seen, self._entry, self._target = database, seen, entry, target
        self._why: dict[SeenRow, tuple[Literal["skipped", "failed"], str]] = {}
        self._held: dict[SeenRow, UUID] = {}  # the id of each on its way
        self._crossing: int | None = None
        self._went: set[UUID] = set()

    @property
    def rows(self) -> MovingStore:
        """The store of the table that they leave."""
        dialect = self._database.dialect
        rows = dialect.delayed_messages if self._seen[0].is_delayed else dialect.waiting_messages
        assert rows is not None
        return rows

    def hold(self, there: Session) -> list[TakenRow]:
        """Lock the rows. Raises DatabaseError if code of others would run: checked under the locks, so it
        stays true.
        """
        found = [row for each in dict.fromkeys(self._seen) if (row := self._hold(there, each))]
        if found and (why := others_code(self.rows.runs(there, self.queue))):
            raise DatabaseError(why)
        return found

    def _hold(self, there: Session, seen: SeenRow) -> TakenRow | None:
        row = self._found(there, seen)
        if row is None:
            self._why[seen] = "skipped", IN_HAND
        elif self.rows.has_own(there, self.queue, row):
            self._why[seen] = "failed", f"{self.queue.table} has columns that {self._place} has no place for."
            return None
        else:
            self._held[seen] = row.id
        return row

    def _found(self, there: Session, seen: SeenRow) -> TakenRow | None:
        waiting, delayed = self._database.dialect.waiting_messages, self._database.dialect.delayed_messages
        assert waiting is not None
        assert delayed is not None
        if seen.is_delayed:
            return delayed.hold(there, self.queue, seen.row_id, seen.due)
        return waiting.hold(there, self.queue, seen.row_id, seen.seq)

    @property
    def _place(self) -> str:
        return self._target.table if self._target else "the archive"

    def intend(self, crossing: int, rows: Sequence[TakenRow]) -> None:
        self._crossing, self._went = crossing, {row.id for row in rows}
        canonical = queue_database().dialect.canonical
        after = {"queue": canonical(self._target)} if self._target else {}
        about = {**self._entry, "count": len(rows), "after": {**after, "rows": [str(row.id) for row in rows]}}
        audit_intents.keep(crossing, **about)

    def outcomes(self, archived: Sequence[int] = (), refused: dict[Any, str] | None = None) -> list[ActOutcome]:
        """``archived``: archive ids of the rows taken, in no order."""
        ids, said = iter(archived), []
        for each in self._seen:
            if (row_id := self._held.get(each)) in self._went:
                said.append(ActOutcome(each, "done", archive_id=next(ids, None)))
            else:
                refusal = (refused or {}).get(row_id, f"{self._place} did not take it.")
                said.append(ActOutcome(each, *self._why.get(each, ("failed", refusal))))
        return said

    def after(self, error: DatabaseError) -> list[ActOutcome]:
        """Settle the crossing after an error. Raises ``error`` if nothing was done."""
        if self._crossing is None:
            raise error
        try:
            settled = crossings.ended(self._crossing)
        except DatabaseError:
            settled = None
        if settled and settled.state == "not_committed":
            raise error
        if settled and settled.state == "committed":
            return self.outcomes([each.archive_id for each in settled.outcomes])
        audit_intents.not_known(self._crossing)
        why = f"It is on its way, and whether it left {self.queue.table} is being asked. {error}"
        return [
            ActOutcome(each, *self._why[each]) if each in self._why else ActOutcome(each, "unknown", why)
            for each in self._seen
        ]

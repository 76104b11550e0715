"""The lease queue on PostgreSQL: ``messages.message`` and its archive (contract: dialects.lease_store)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from weakref import WeakSet

from pgqueue_admin.dialects.connection import Connection
from pgqueue_admin.dialects.lease_store import QUEUE, DeadLease, Ended, Ending, Expired, HandEnding, Lease, Outlook
from pgqueue_admin.dialects.postgresql import addressing
from pgqueue_admin.dialects.statements import Statements

_CANONICAL = addressing.canonical(QUEUE)


class PostgreSQLLeases:
    """All times are by the server's clock."""

    def __init__(self, statements: Statements):
        self._sql = statements
        self._with_holders: WeakSet[Any] = WeakSet()  # sessions; a column once added stays
        self._held: dict[str, Any] = {"is_held": statements.is_held, "is_over": statements.is_over}

    def is_installed(self, session: Connection) -> bool:
        return bool(session.value(self._sql.is_installed()))

    def publish(self, session: Connection, messages: Sequence[str]) -> list[int]:
        return [row.id for row in session.all(self._sql.publish(), {"messages": list(messages)})]

    def claim(self, session: Connection, most: int, seconds: float, releases: int = 0, holder: str = "") -> list[Lease]:
        about: dict[str, Any] = {"seconds": seconds, "releases": releases}
        noted = self._sql.without_holder
        if self._keeps_holders(session):
            noted, about["holder"] = self._sql.with_holder, holder or None
        rows = session.all(self._sql.claim(until=self._sql.until, noted=noted, most=most), about)
        return sorted(Lease(*row) for row in rows)

    def _keeps_holders(self, session: Connection) -> bool:
        """Whether the tables have holders. Queried until true, then remembered for the session."""
        if session.raw in self._with_holders:
            return True
        if not session.value(self._sql.keeps_holders()):
            return False
        self._with_holders.add(session.raw)
        return True

    def renew(self, session: Connection, leases: Sequence[tuple[int, str]], seconds: float) -> set[str]:
        query = self._sql.renew(until=self._sql.until, **self._held)
        return {row.token for row in session.all(query, {**_columns(leases, ("ids", "tokens")), "seconds": seconds})}

    def finish(
        self,
        session: Connection,
        endings: Sequence[Ending],
        handled_by: str,
        machine: str,
        archive_success: bool = True,
    ) -> list[Ended]:
        names = (
            "ids",
            "tokens",
            "results",
            "details",
            "types",
            "exception_types",
            "exception_messages",
            "stack_traces",
        )
        about = {"handled_by": handled_by, "machine": machine, "queue": _CANONICAL, "archive_success": archive_success}
        rows = session.all(self._sql.finish(**self._held), {**_columns(endings, names), **about})
        return [Ended(*row) for row in rows]

    def release(self, session: Connection, lease: tuple[int, str], after: float | datetime = 0) -> bool:
        at, seconds = (after, 0.0) if isinstance(after, datetime) else (None, after)
        about = {"id": lease[0], "token": lease[1], "at": at, "seconds": seconds}
        return session.one(self._sql.release(**self._held), about) is not None

    def release_seen(self, session: Connection, id: int, seen: str) -> bool:
        query = self._sql.release_seen(seen=self._sql.seen)
        return session.one(query, {"id": id, "seen": seen}) is not None

    def end_seen(self, session: Connection, id: int, seen: str, ending: HandEnding) -> int | None:
        by = {"who": ending.who, "handled_by": ending.who[:50], "details": ending.details, "result": ending.result}
        row = session.one(self._sql.end_seen(seen=self._sql.seen), {"id": id, "seen": seen, "queue": _CANONICAL, **by})
        return row.id if row else None

    def seen_now(self, session: Connection, id: int) -> str | None:
        row = session.one(self._sql.seen_now(seen=self._sql.seen), {"id": id})
        return row.seen if row else None

    def expire(self, session: Connection, most: int, handled_by: str) -> Expired:
        query = self.expire_query(session, most)
        return Expired(*session.all(query, {"handled_by": handled_by, "queue": _CANONICAL})[0])

    def expire_query(self, session: Connection, most: int) -> Any:
        """The query that fits the tables' version; its parameters are handled_by and queue."""
        held_by = self._sql.held_by if self._keeps_holders(session) else self._sql.held_by_nobody_knows
        return self._sql.expire(is_over=self._sql.is_over, held_by=held_by, most=most)

    def renotify(self, session: Connection, most: int) -> int:
        return int(session.value(self._sql.renotify(waits=self._sql.waits, most=most)))

    def outlook(self, session: Connection) -> Outlook:
        return Outlook(*session.all(self._sql.outlook())[0])

    def ask_for_dead(self, session: Connection) -> None:
        session.run(self._sql.ask_for_dead())

    def claim_dead(self, session: Connection, most: int, seconds: float) -> list[DeadLease]:
        rows = session.all(self._sql.claim_dead(most=most), {"seconds": seconds})
        return [DeadLease(*row) for row in rows]

    def end_dead(self, session: Connection, archive_id: int) -> None:
        session.run(self._sql.end_dead(), {"id": archive_id})

    def delay_dead(self, session: Connection, archive_id: int, seconds: float) -> None:
        session.run(self._sql.delay_dead(), {"id": archive_id, "seconds": seconds})

    def dead_due_in(self, session: Connection) -> float | None:
        seconds: float | None = session.value(self._sql.dead_due_in())
        return seconds


def _columns(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}

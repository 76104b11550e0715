"""Prepared transactions over several databases that nobody has ended, and the sessions that wait for them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.decision_store import COORDINATOR, DECISIONS
from pgqueue_admin.dialects.two_phase import Prepared
from pgqueue_admin.formatting import durations
from pgqueue_admin.formatting.numbers import format_int

MOST = 100
LATE = timedelta(minutes=2)  # a running process recovers them each minute


class Owner(NamedTuple):
    """The outbox whose decision table decides, and which of the requested ids it has decided."""

    outbox: Address
    decided: frozenset[str]


@dataclass(frozen=True, slots=True)
class InDoubt:
    """``alias``: the database queried; empty: that of the queues. ``tables``, ``waiting``: None: unknown.

    ``age``: None: unknown. ``is_seen``: the age counts from when it was first seen, because its server does not report
    it.
    """

    prepared: Prepared
    age: timedelta | None
    alias: str = ""
    is_seen: bool = False
    owner: Owner | None = None  # None: not found in the databases we read

    @property
    def is_decided(self) -> bool:
        return self.owner is not None and self.id in self.owner.decided

    @property
    def name(self) -> str:
        return self.prepared.name

    @property
    def id(self) -> str:
        """Its id in the endpoint's decision table."""
        return self.prepared.id

    @property
    def tables(self) -> tuple[str, ...] | None:
        return self.prepared.tables

    @property
    def waiting(self) -> int | None:
        return self.prepared.waiting

    @property
    def waiting_said(self) -> str:
        return "unknown" if self.waiting is None else format_int(self.waiting)

    @property
    def waits_for(self) -> str:
        return "behind all of that server" if self.prepared.is_shared and self.waiting is not None else ""

    @property
    def is_late(self) -> bool:
        return self.age is not None and self.age > LATE

    @property
    def age_said(self) -> str:
        return durations.duration(self.age.total_seconds()) if self.age is not None else ""


def find(connection: Connection, now: datetime, alias: str = "") -> list[InDoubt]:
    """The oldest on the session's server, in any of its databases. Raises DatabaseError."""
    two_phase = connection.dialect.two_phase_commit
    found = two_phase.in_doubt(connection, MOST) if two_phase else []
    return [InDoubt(each, _age(each, now), alias) for each in found]


def _age(prepared: Prepared, now: datetime) -> timedelta | None:
    return max(now - prepared.since, timedelta()) if prepared.since else None


def owners(connection: Connection, outboxes: list[Address], found: list[InDoubt]) -> dict[str, Owner]:
    """By coordinator, for the outboxes in this database. Raises DatabaseError."""
    owners, ids = {}, [COORDINATOR, *{each.id for each in found}]
    for outbox in _with_decisions(connection, outboxes):
        table = outbox._replace(table=outbox.table + DECISIONS)
        rows = connection.all(connection.dialect.decision.some(table=table), {"ids": ids})
        said = {row.id: row.names for row in rows}
        if coordinator := said.pop(COORDINATOR, None):
            owners[coordinator] = Owner(outbox, frozenset(said))
    return owners


def _with_decisions(connection: Connection, outboxes: list[Address]) -> list[Address]:
    dialect = connection.dialect
    by_name = {dialect.native(each): each for each in outboxes}
    asked = {"schemas": [each.schema for each in by_name], "names": [each.table + DECISIONS for each in by_name]}
    rows = connection.all(dialect.decision.tables(), asked) if by_name else []
    if rows and dialect.lists_roles:
        traps = {row.oid for row in connection.all(dialect.monitor.calls())}
        rows = [row for row in rows if row.oid not in traps]
    return [by_name[Address(row.schema, row.table.removesuffix(DECISIONS))] for row in rows]


def each_once(found: list[InDoubt]) -> list[InDoubt]:
    """Deduplicate: databases of one server list the same transactions. The entry from its own database knows the table
    names.

    Oldest first; those of unknown age last.
    """
    best: dict[str, InDoubt] = {}
    for each in found:
        if each.name not in best or (each.prepared.is_here and not best[each.name].prepared.is_here):
            best[each.name] = each
    return sorted(best.values(), key=lambda each: (each.age is None, -(each.age or timedelta()), each.name))

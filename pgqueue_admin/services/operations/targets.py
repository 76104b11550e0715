"""Judges where a retry may write, for its preview, the act, and the button of one message.

A message names its own target, and anybody may have sent it. So a target must be an input queue; other tables shaped
like queues are written to only if a person named them. It reads only the catalog, so no code of others runs.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pgqueue_admin.archive import crossings, foreign_code
from pgqueue_admin.archive.held_row import others_code
from pgqueue_admin.dialects import Address, Connection, Dialect, database_alias
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Endpoint, queue_lookup
from pgqueue_admin.models.queue_database import (
    QueueDatabase,
    database_of,
    is_watched,
    lies_elsewhere,
    of_alias,
    only_looked,
    queue_database,
)
from pgqueue_admin.monitor import table_classifier
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.services import queue_access

_OTHERS = {
    TableKind.ERROR: "an error queue",
    TableKind.AUDIT: "an audit queue",
    TableKind.PLATFORM: "a queue of ServiceControl",
    TableKind.ARCHIVE: "a copy of a queue",
}
_INPUTS = {TableKind.INPUT, TableKind.LEASE}
Chosen = Collection[Address]


@dataclass(frozen=True, slots=True)
class Target:
    """``blocking_reason``: a sentence; empty: it can be written to. ``other``: its kind if it is no input queue, such
    as an error queue. ``runs``: code of other roles that runs as ours with each insert. ``trouble``: why its database
    did not answer.
    """

    address: Address
    blocking_reason: str = ""
    other: str = ""
    runs: tuple[str, ...] = ()
    trouble: DatabaseError | None = None

    def refusal(self, chosen: Chosen = ()) -> str:
        """Why nothing is sent to it, unless a person named it; empty: it accepts messages."""
        if self.blocking_reason or not self.other or self.address in chosen:
            return self.blocking_reason
        return f"{self.name} is {self.other}, not an input queue: a retry goes there only when you choose it by name."

    def refusal_by_hand(self, chosen: Chosen = ()) -> str:
        """Likewise for an act by hand, which runs no code of others and spans one database."""
        return lies_elsewhere(self.address) or self.refusal(chosen) or others_code(self.runs)

    @property
    def takes_copies(self) -> bool:
        return self.other == _OTHERS[TableKind.AUDIT]

    @property
    def name(self) -> str:
        return postgresql().canonical(self.address)


def judge(connection: Connection, addresses: Iterable[Address]) -> dict[Address, Target]:
    """Judge each address as the target of a retry. Raises DatabaseError only of the first database, whose session this
    is; faults of other databases are reported with their queues.
    """
    by_database: dict[QueueDatabase, list[Address]] = defaultdict(list)
    found: dict[Address, Target] = {}
    for each in dict.fromkeys(addresses):
        if beyond := queue_access.refusal_for(each):
            found[each] = Target(each, f"It {beyond}.")
        else:
            by_database[database_of(each)].append(each)
    for database, asked in by_database.items():
        found |= _elsewhere(connection, database, asked) if database.alias else _asked(connection, postgresql(), asked)
    return found


def _elsewhere(connection: Connection, database: QueueDatabase, asked: list[Address]) -> dict[Address, Target]:
    """Judge queues of another database. A retry there is a crossing: it must be allowed, and its outcome knowable."""
    store = database.dialect.crossings
    if not database.is_writable or store is None:
        return {each: Target(each, only_looked(database.alias)) for each in asked}
    if not crossings.can_carry(connection):
        return {each: Target(each, crossings.NOT_KEPT) for each in asked}
    try:
        with database.read_session() as there:
            if fault := store.fault(there):
                return {each: Target(each, fault) for each in asked}
            return _asked(there, database.dialect, asked)
    except DatabaseError as error:
        why = f"The database {database.alias} cannot be asked: {error}"
        return {each: Target(each, why, trouble=error) for each in asked}


def _asked(connection: Connection, dialect: Dialect, asked: list[Address]) -> dict[Address, Target]:
    """``connection``: to their database; ``dialect``: the dialect of their names."""
    allowed: list[Address] = []
    found: dict[Address, Target] = {}
    for each in asked:  # one retry may have some ten thousand queues: one pass
        if is_watched(each):
            allowed.append(each)
        else:
            found[each] = _unwatched(each)
    native = [dialect.native(each) for each in allowed]
    names = {"schemas": [each.schema for each in native], "tables": [each.table for each in native]}
    query = dialect.operation.targets(**foreign_code.parts(foreign_code.INSERT))
    rows = connection.all(query, names) if native else []
    by_name = {Address(row.schema, row.table): row for row in rows}
    kinds = _kinds(allowed)
    named = zip(allowed, native, strict=True)
    return found | {each: _judged(each, by_name[there], kinds.get(each)) for each, there in named}


def not_given_back(connection: Connection, addresses: Iterable[Address]) -> Mapping[Address, str]:
    """Return by queue of other databases why a retry's messages are not taken back from it (archive.call_back.Judge).
    Raises DatabaseError if a database does not answer: then the act waits for it.
    """
    why: dict[Address, str] = {}
    for each in addresses:
        if found := _give_back_refusal(
            connection, of_alias(database_alias.alias_of(each)), database_alias.alias_of(each)
        ):
            why[each] = found
    return why


def _give_back_refusal(connection: Connection, database: QueueDatabase | None, alias: str) -> str:
    if database is None or not database.is_writable:
        return only_looked(alias)
    store = database.dialect.crossings
    if store is None or database.dialect.waiting_messages is None:
        return only_looked(alias)
    if not crossings.can_carry(connection):
        return crossings.NOT_KEPT
    with database.read_session() as there:
        return store.fault(there)


def refusals(connection: Connection, addresses: Iterable[Address], chosen: Chosen = ()) -> Mapping[Address, str]:
    """Return by address why it is not written to (archive.dead_messages.Judge).

    Raises DatabaseError also if another database did not answer: then an act waits for it.
    """
    judged = judge(connection, addresses).values()
    if trouble := next((each.trouble for each in judged if each.trouble), None):
        raise trouble
    return {each.address: why for each in judged if (why := each.refusal(chosen))}


def judge_with(chosen: Chosen) -> Callable[[Connection, Iterable[Address]], Mapping[Address, str]]:
    return lambda connection, addresses: refusals(connection, addresses, chosen)


def parsed(names: Iterable[str]) -> set[Address]:
    """Parse addresses as typed by a person or sent by a form; skip invalid ones."""
    schema = queue_database().default_schema
    return {address for each in names if (address := _address(each, schema))}


def _address(text: str, default_schema: str) -> Address | None:
    try:
        return postgresql().parse_address(text, default_schema)
    except AddressUnreadable:
        return None


def _unwatched(address: Address) -> Target:
    return Target(
        address, f"Its queue is in schema {address.schema!r}, which is not watched here (PGQUEUE_QUEUE_SCHEMAS)."
    )


def _judged(address: Address, row: Any, known: TableKind | None) -> Target:
    kind = _shape(row)
    if kind is None:
        gone = f"there is no queue table {address.table!r} in schema {address.schema!r}"
        return Target(address, f"Its queue is gone: {gone}.")
    blocking_reason = _refused(address, row)
    other = "" if (known or kind) in _INPUTS else _OTHERS.get(known or kind, "of another kind")
    return Target(address, blocking_reason, other, tuple(row.runs or ()))


def _shape(row: Any) -> TableKind | None:
    """Classify by columns and name; None for a table that messages cannot be put into, or taken from."""
    judged = table_classifier.judge(row) if row.columns else None
    return judged[0] if judged and (judged[0] is TableKind.LEASE or table_classifier.is_queue(row.columns)) else None


def _refused(address: Address, row: Any) -> str:
    name = postgresql().canonical(address)
    if not row.may_insert:
        return f"The database role {row.role} may not insert into {name}."
    if row.must_have:
        return f"{name} takes no message: it wants a value in {', '.join(row.must_have)}, or makes one of ours itself."
    if row.is_closed:
        return f"{name} lets nothing in: it has row-level security, and no policy of it is for the role {row.role}."
    return ""


def _kinds(addresses: Collection[Address]) -> dict[Address, TableKind]:
    """Return kinds as the sampler knows them. Error and audit queues of ours may have any name, and be empty."""
    rows = queue_lookup.near(addresses).filter(gone_since=None).values_list("schema", "table", "kind")
    known = {Address(schema, table): TableKind(kind) for schema, table, kind in rows}
    for schema, error, audit in Endpoint.objects.values_list("schema", "error_queue", "audit_queue"):
        for kind, text in ((TableKind.ERROR, error), (TableKind.AUDIT, audit)):
            if text and (address := _of_endpoint(text, schema)):
                known[address] = kind
    return known


def _of_endpoint(text: str, schema: str) -> Address | None:
    try:
        return postgresql().parse_address(text, schema)
    except AddressUnreadable:
        return None

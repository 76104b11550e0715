"""Crossings: messages on their way between the first database and another, recorded here before they leave."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID
from weakref import WeakSet

from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql

NOT_KEPT = (
    "The engine's tables cannot hold what an act over two databases needs: run manage.py engine_schema, and let this"
    " console's role read and write them."
)
AT_ONCE = 100


class Crossing(NamedTuple):
    """``mark``: key for querying the commit outcome in the other database; None: its transaction cannot have committed.
    ``takes_in``: from there into the archive; otherwise into a queue there. ``restores``: messages sent there were
    discarded; messages taken in become discarded. A crossing that ``takes_back`` takes in what a retry sent there."""

    id: int
    alias: str
    takes_in: bool
    operation: int | None
    who: str
    restores: bool
    begun_at: Any
    mark: str | None
    not_known: str | None

    @property
    def is_by_hand(self) -> bool:
        """For a crossing that takes in: a person started it, and the messages had not failed."""
        return self.takes_in and self.who != INGESTER


INGESTER = "ingester"


def why_held(row: Any) -> str:
    """Why an archived message in a crossing cannot be acted on."""
    takes_in = bool(row.crossing_takes_in)
    if row.crossing_not_known:
        return doubt_of(row.crossing, row.crossing_not_known, takes_in)
    return _on_its_way(row.crossing, takes_in)


def on_its_way_into(target: Address) -> str:
    return _on_its_way(database_alias.alias_of(target))


def _on_its_way(alias: str, takes_in: bool = False) -> str:
    if takes_in:
        return f"It is being called back from the database {alias}: whether it has left that is being asked."
    return f"It is on its way into the database {alias}: whether it has arrived is being asked."


def doubt_of(alias: str, why: str, takes_in: bool = False) -> str:
    went = f"taken out of {alias}" if takes_in else f"put into {alias}"
    return f"Nobody knows whether it was {went}, so a person decides (see Crossings). {why}"


class CrossingOvertaken(DatabaseError):
    """Another process found that this crossing never left, and has taken it over."""


_keeping: WeakSet[Any] = WeakSet()  # sessions that found the tables; tables do not disappear


def are_kept(connection: Connection) -> bool:
    """Whether the crossing tables exist and are readable. Cached per session once true."""
    if connection.raw not in _keeping and connection.value(_sql().are_kept()):
        _keeping.add(connection.raw)
    return connection.raw in _keeping


def can_carry(connection: Connection) -> bool:
    """Whether messages may set out: the role can read all tables of a crossing."""
    return are_kept(connection) and bool(connection.value(_sql().can_carry()))


def on_its_way(connection: Connection) -> Any:
    """SQL part of reading an archived message: its crossing."""
    return postgresql().archive.on_its_way if are_kept(connection) else postgresql().archive.stays_here


def on_their_way(connection: Connection) -> dict[str, Any]:
    """SQL parts of locking many archived messages: their crossings."""
    sql = postgresql().archive
    if are_kept(connection):
        return {"on_its_way_at_once": sql.on_its_way_at_once, "crossing_of": sql.crossing_of}
    return {"on_its_way_at_once": sql.stays_here, "crossing_of": sql.no_crossing}


def is_here(connection: Connection) -> Any:
    """SQL part of choosing the next items of an operation."""
    return postgresql().operation.is_here if are_kept(connection) else postgresql().operation.all_are_here


def put_back(
    connection: Connection,
    rows: Mapping[Address, Sequence[Any]],
    redirected: Collection[int],
    who: str,
    operation: int | None,
    restores: bool,
) -> list[int]:
    """In the caller's transaction: start a crossing per database for these archived messages. The session holds the
    locks of the crossings from before they are visible until ``all_let_go``."""
    made = []
    for alias in sorted({database_alias.alias_of(target) for target in rows}):
        meant = [
            (row.id, target) for target in rows if database_alias.alias_of(target) == alias for row in rows[target]
        ]
        about: dict[str, Any] = {
            "ids": [each for each, _ in meant],
            "schemas": [target.schema for _, target in meant],
            "tables": [target.table for _, target in meant],
            "redirected": [each in redirected for each, _ in meant],
        }
        about |= {"alias": alias, "who": who, "operation": operation, "restores": restores}
        crossing = connection.value(_sql().put_back(), about)
        connection.value(_sql().hold(), {"id": crossing})
        made.append(crossing)
    return made


def take_back(connection: Connection, rows: Mapping[Address, Sequence[Any]], who: str, operation: int) -> None:
    """Likewise: start crossings that take a retry's messages out of queues of other databases. ``rows``: as
    ``call_back.sent_by_ids``."""
    for alias in sorted({database_alias.alias_of(target) for target in rows}):
        meant = [(row, target) for target in rows if database_alias.alias_of(target) == alias for row in rows[target]]
        about: dict[str, Any] = {
            "ids": [row.id for row, _ in meant],
            "schemas": [target.schema for _, target in meant],
            "tables": [target.table for _, target in meant],
            "row_ids": [UUID(row.sent_as) for row, _ in meant],
        }
        crossing = connection.value(_sql().take_back(), {**about, "alias": alias, "who": who, "operation": operation})
        connection.value(_sql().hold(), {"id": crossing})


def put_edited(connection: Connection, edited: Mapping[int, tuple[str, bytes | None]]) -> None:
    """After ``put_back``, in its transaction: the headers and bodies to send instead. Body None: the archive's."""
    headers, bodies = ([each[place] for each in edited.values()] for place in (0, 1))
    connection.run(_sql().put_edited(), {"ids": list(edited), "headers": headers, "bodies": bodies})


def put_typed(connection: Connection, queue: Address, headers: str, body: bytes, who: str) -> int:
    """In the caller's transaction: start a crossing for a message that a person composed; its lock is held likewise."""
    about = {"alias": database_alias.alias_of(queue), "schema": queue.schema, "table": queue.table}
    crossing: int = connection.value(_sql().put_typed(), {**about, "headers": headers, "body": body, "who": who})
    connection.value(_sql().hold(), {"id": crossing})
    return crossing


def move(connection: Connection, target: Address, rows: Mapping[UUID, int], who: str) -> int:
    """In the caller's transaction: start a crossing for rows, by their seq, that move to another queue of their
    database; its lock is held likewise. Only their ids are recorded here: the rows stay there."""
    about = {"alias": database_alias.alias_of(target), "schema": target.schema, "table": target.table, "who": who}
    rows_of = {"row_ids": list(rows), "numbers": list(rows.values())}
    crossing: int = connection.value(_sql().move(), {**about, **rows_of})
    connection.value(_sql().hold(), {"id": crossing})
    return crossing


@contextmanager
def all_let_go(connection: Connection) -> Iterator[None]:
    """At the end, release all crossing locks of this session."""
    try:
        yield
    finally:
        with suppress(DatabaseError):
            connection.value(_sql().let_all_go())


def take_in(
    connection: Connection, alias: str, who: str, operation: int | None = None, restores: bool = False
) -> Crossing:
    """In the caller's transaction: start a crossing for rows of a queue there. The session holds its lock likewise."""
    about = {"alias": alias, "who": who, "operation": operation, "restores": restores}
    crossing = Crossing(*connection.one(_sql().take_in(), about))  # type: ignore[misc]
    connection.value(_sql().hold(), {"id": crossing.id})
    return crossing


def open_ones(connection: Connection, operation: int | None = None, alias: str | None = None) -> list[Crossing]:
    """Open crossings, oldest first: of one operation, of one database, or all."""
    return _listed(connection, _sql().open(), operation=operation, alias=alias)


def not_known_ones(connection: Connection, operation: int | None = None) -> list[Crossing]:
    """Crossings that a person has to decide, oldest first: of one operation, or all."""
    return _listed(connection, _sql().not_known(), operation=operation)


def get(connection: Connection, crossing: int) -> Crossing | None:
    """Its current state, whoever holds its lock; None if it has ended."""
    row = connection.one(_sql().get(), {"id": crossing}) if are_kept(connection) else None
    return Crossing(*row) if row else None


def how_it_stands(connection: Connection, crossing: int, target: Address) -> str:
    """Describe a crossing whose arrival is not known: still being queried, or waiting for a person's decision."""
    found = get(connection, crossing)
    return doubt_of(found.alias, found.not_known) if found and found.not_known else on_its_way_into(target)


def is_typed(connection: Connection, crossing: Crossing) -> bool:
    """Whether it sends a message that a person composed, so no archived message waits for its end."""
    return bool(connection.value(_sql().is_typed(), {"id": crossing.id}))


def is_move(connection: Connection, crossing: Crossing) -> bool:
    """Whether it moves rows between two queues there."""
    return bool(connection.value(_sql().is_move(), {"id": crossing.id}))


def takes_back(connection: Connection, crossing: Crossing) -> bool:
    """Whether it takes out of a queue there what a retry put into it."""
    return crossing.takes_in and bool(connection.value(_sql().takes_back(), {"id": crossing.id}))


def reopen(connection: Connection, crossing: Crossing, ids: Sequence[int]) -> None:
    """Reopen the operation's items that were failed because the outcome was not known."""
    connection.run(_sql().reopen(), {"operation": crossing.operation, "ids": list(ids)})


def unsettled(connection: Connection, late: timedelta) -> list[Any]:
    """Crossings that began longer ago than ``late``, by database: alias, begun_at, seconds, and message counts
    ``undecided`` and ``going``."""
    return connection.all(_sql().unsettled(), {"late": late}) if are_kept(connection) else []


def rows(connection: Connection, crossing: Crossing) -> dict[Address, list[str]]:
    """The ids of its rows in the other database, by queue."""
    found = connection.all(_sql().rows(), {"id": crossing.id})
    return {Address(row.schema, row.table): row.ids for row in found}


def _listed(connection: Connection, statement: Any, **about: Any) -> list[Crossing]:
    if not are_kept(connection):
        return []
    return [Crossing(*row) for row in connection.all(statement, {"limit": AT_ONCE, **about})]


def is_open(connection: Connection, operation: int) -> bool:
    return are_kept(connection) and bool(connection.value(_sql().is_open(), {"operation": operation}))


@contextmanager
def held(connection: Connection, crossing: int) -> Iterator[Crossing | None]:
    """The crossing, with its lock held; None if another session holds the lock or it has ended."""
    if not connection.value(_sql().hold(), {"id": crossing}):
        yield None
        return
    try:
        yield get(connection, crossing)
    finally:
        with suppress(DatabaseError):  # a lost session has released the lock
            connection.value(_sql().let_go(), {"id": crossing})


def leave(connection: Connection, crossing: Crossing, mark: str, refused: Mapping[int, str]) -> None:
    """Record the mark, before the other database commits. ``refused``: messages it did not take. Raises
    CrossingOvertaken."""
    with connection.transaction():
        make_durable(connection)
        if connection.run(_sql().mark(), {"id": crossing.id, "mark": mark}) != 1:
            raise CrossingOvertaken
        if refused:
            about = {"ids": list(refused), "whys": list(refused.values())}
            connection.run(_sql().refuse(), {"id": crossing.id, **about})


def make_durable(connection: Connection) -> None:
    """In the caller's transaction: commit synchronously. No crash may undo it once the other database is told, or
    forgets its mark."""
    connection.run(_sql().durable())


def undo(connection: Connection, crossing: Crossing) -> bool:
    """Delete a crossing that never arrived. Return whether it was still as read."""
    return connection.run(_sql().undo(), {"id": crossing.id, "mark": crossing.mark}) == 1


def doubt(connection: Connection, crossing: Crossing, why: str) -> None:
    """In the caller's transaction: leave the decision to a person."""
    connection.run(_sql().doubt(), {"id": crossing.id, "why": why})


def _sql() -> Any:
    return postgresql().crossing_intent

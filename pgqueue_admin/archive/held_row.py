"""One waiting row that a person saw, in a queue or a delayed table, locked until the transaction ends."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

from pgqueue_admin.archive.row_move import RowPlace
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.wire.message import IncomingMessage

OF_QUEUE = ("id", "expires", "headers", "body", "seq")
OF_DELAYED = ("id", "headers", "body", "due")


class MessageInFlight(Exception):
    """Another session has locked the message."""


class MessageGone(Exception):
    """The message is no longer in this table."""


class NotMovable(Exception):
    """Moving would lose data, or run other roles' code."""


class SeenRow(NamedTuple):
    """The row as shown. A delayed one is identified by ``due``, exactly as the database writes it in UTC; others by
    ``seq``. ``queue``: the destination of a delayed message."""

    table: Address
    row_id: UUID
    seq: int = 0
    due: str = ""
    queue: Address | None = None

    @property
    def is_delayed(self) -> bool:
        return bool(self.due)

    @property
    def home(self) -> Address:
        """The queue that the message belongs to."""
        return self.queue or self.table


class HeldRow(NamedTuple):
    """``message``: without its body, which stays in the database. ``others``: the table's extra columns that have a
    value, with their types."""

    seen: SeenRow
    place: RowPlace
    message: IncomingMessage
    others: dict[str, str]


def hold(connection: Connection, seen: SeenRow) -> HeldRow:
    """Lock the row in the caller's transaction, by SKIP LOCKED. Raises MessageInFlight, MessageGone, or NotMovable if
    deleting it would run other roles' code."""
    statement = _sql().hold_delayed if seen.is_delayed else _sql().hold
    asked = {"id": seen.row_id, "due": seen.due} if seen.is_delayed else {"id": seen.row_id, "seq": seen.seq}
    row = connection.one(statement(table=seen.table), asked)
    if row is None:
        there = connection.value(_sql().is_there(table=seen.table), {"id": seen.row_id})
        raise MessageInFlight if there else MessageGone
    hold_table(connection, seen.table)
    _raise_for_code(connection, seen.table)
    place = RowPlace(row.part, row.place)
    message = IncomingMessage.of_row(seen.home, row)
    return HeldRow(seen, place, message, _others(connection, seen, place))


def would_run(connection: Connection, table: Address) -> str:
    """A sentence naming other roles' code that locking or deleting a row would run with our rights; empty: none."""
    runs = _sql().runs(calls=postgresql().monitor.calls, is_engines=postgresql().operation.is_engines)
    return others_code(connection.value(runs, _named(table)) or ())


@contextmanager
def only_tables(connection: Connection, table: Address) -> Iterator[None]:
    """For statements that lock rows, in the caller's transaction. No view is read, even if one replaced the table since
    the check; code added before the rows were locked is detected afterwards. Raises NotMovable before or after them."""
    _raise_for_code(connection, table)
    connection.value(_sql().refuse_views())
    yield
    connection.value(_sql().allow_views())
    hold_table(connection, table)
    _raise_for_code(connection, table)


def hold_table(connection: Connection, table: Address) -> None:
    """Take a writer's table lock: until the transaction ends nobody can attach code. A row lock alone does not stop a
    new trigger."""
    connection.run(postgresql().operation.hold_table(table=table))


def _raise_for_code(connection: Connection, table: Address) -> None:
    if why := would_run(connection, table):
        raise NotMovable(why)


def others_code(runs: Collection[str]) -> str:
    """Why the console does not write there; empty: no foreign code would run."""
    return f"Code of others would run with the rights of this console: {', '.join(runs)}." if runs else ""


def columns(connection: Connection, table: Address, known: tuple[str, ...] = OF_QUEUE) -> dict[str, str]:
    """Extra columns with their types: not in ``known`` and not generated."""
    rows = connection.all(_sql().other_columns(), {**_named(table), "moved": list(known)})
    return {row.name: row.type for row in rows}


def _others(connection: Connection, seen: SeenRow, place: RowPlace) -> dict[str, str]:
    found = columns(connection, seen.table, OF_DELAYED if seen.is_delayed else OF_QUEUE)

    def has_value(name: str) -> Any:
        return connection.value(_sql().has_value(table=seen.table, column=name), place._asdict())

    return {name: type_ for name, type_ in found.items() if has_value(name)}


def _named(table: Address) -> dict[str, str]:
    return {"schema": table.schema, "name": table.table}


def _sql() -> Any:
    return postgresql().move_to_archive

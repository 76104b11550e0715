"""A queue, used through its statements only."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import uuid4

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql

QUEUE = Address("public", "Sales")
SQL = postgresql().queue
ROW = {"ttbr_ms": None, "headers": '{"a":"ü"}', "body": b"\0\xff"}


class Trace(NamedTuple):
    """libpq's trace of messages."""

    text: str

    @property
    def round_trips(self) -> int:
        return self.text.count("ReadyForQuery")


Traced = Callable[[Callable[[], object]], Trace]


def row(**more: Any) -> dict[str, Any]:
    return {"id": uuid4(), **ROW, **more}


def send(connection: Connection, **more: Any) -> None:
    connection.run(SQL.send(table=QUEUE), row(**more))


def bodies(connection: Connection) -> list[bytes]:
    return [bytes(each[0]) for each in connection.all('select body from "Sales" order by seq')]

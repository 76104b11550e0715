"""Messages recorded as having crashed their process, for tests that need no real crash."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import InFlightAtCrash
from pgqueue_admin.transport import Endpoint

HOW = "ended by SIGSEGV"


def crashing_message(connection: Connection, dsn: str, deaths: int = 3, name: str = "Sales", **facts: Any) -> Any:
    """Send a message to the queue of ``name`` and record that many crashes with it in flight; return its id and seq."""
    endpoint = Endpoint(name, dsn)
    endpoint.create_queues()
    message_id = endpoint.send(name, {"way": "segfault"}, type="Shop.Deadly")
    endpoint.stop()
    row = connection.one(f'select id, seq from "{name}" order by seq desc limit 1')
    assert row is not None
    for number in range(deaths):
        _death(row, name, number, message_id=message_id, **facts)
    return row


def _death(row: Any, name: str, number: int, **facts: Any) -> None:
    at = datetime.now(UTC) - timedelta(seconds=60 - number)
    who = {"endpoint": name, "schema": "public", "table": name, "host": "app-1", "pid": 100 + number, "start_ticks": 1}
    how = {"exit_code": -11, "how": HOW, "message_type": "Shop.Deadly", "died_at": at, "received_at": at}
    InFlightAtCrash.objects.create(row_id=row.id, seq=row.seq, **{**who, **how, **facts})

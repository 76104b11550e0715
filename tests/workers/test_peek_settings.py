"""C5, T17: both peek settings take effect within a second on a running worker, by the server's statement log."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import groupby

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.services import endpoints
from pgqueue_admin.transport import Endpoint
from tests.transport.statements_log import StatementsLog
from tests.waiting import NOISE, until
from tests.workers.host import House, want
from tests.workers.shop.handlers import TYPE

SEVERAL = f"""
insert into "Sales" (id, headers, body)
select gen_random_uuid(), '{{"NServiceBus.EnclosedMessageTypes":"{TYPE}"}}', '{{}}' from generate_series(1, 20)
"""
TRIES = 3  # the machine may be busy: the quickest try shows what the worker can do


@pytest.fixture
def log(server: PostgreSQL, look: Connection, sales: Endpoint) -> StatementsLog:
    """Created before any process of ours connects."""
    return StatementsLog(server, look, "Sales")


def change(house: House, **settings: int | None) -> Row:
    return endpoints.save_settings("Sales", settings, "ana", "console")


def taken(house: House, row: Row) -> None:
    house.first("taken", settings_version=row.version)


def quickest(once: Callable[[], timedelta]) -> timedelta:
    return min(once() for _ in range(TRIES))


def test_the_peek_delay(house: House, log: StatementsLog) -> None:
    want(1, peek_delay_ms=60_000)
    house.supervise()
    (child,) = house.running(1)
    until(log.asked, what="the first peek")

    def shortened() -> timedelta:
        changed = change(house, peek_delay_ms=100).changed_at
        until(lambda: len(_since(log, changed, "peek")) >= 3, what="it peeks again and again")
        taken(house, change(house, peek_delay_ms=60_000))
        return _since(log, changed, "peek")[2] - changed

    assert quickest(shortened) < timedelta(seconds=1) * NOISE
    assert house.running(1)[0].pid == child.pid


def test_the_most_records_to_peek(house: House, log: StatementsLog, look: Connection) -> None:
    want(1, peek_delay_ms=100, max_records_to_peek=1)
    house.supervise()
    (child,) = house.running(1)
    look.run(SEVERAL)
    until(lambda: look.value("select count(*) = 20 from handled"), what="handled")
    assert max(length for _, length in _receives_by_peek(log)) == 1

    def raised() -> timedelta:
        changed = change(house, max_records_to_peek=5).changed_at
        first = until(lambda: _more_than_one(log, look, changed), what="several receives by one peek")
        taken(house, change(house, max_records_to_peek=1))
        return first - changed

    assert quickest(raised) < timedelta(seconds=1) * NOISE
    assert max(length for _, length in _receives_by_peek(log)) <= 5
    assert house.running(1)[0].pid == child.pid


def _since(log: StatementsLog, at: datetime, kind: str) -> list[datetime]:
    return [each.at for each in log.timed() if each.kind == kind and each.at > at]


def _more_than_one(log: StatementsLog, look: Connection, at: datetime) -> datetime | None:
    """When a peek first led to several receives; keeps the queue filled."""
    if not look.value('select count(*) from "Sales"'):
        look.run(SEVERAL)
    return next((began for began, length in _receives_by_peek(log) if length > 1 and began > at), None)


def _receives_by_peek(log: StatementsLog) -> Iterator[tuple[datetime, int]]:
    """Start and number of the receives after each peek."""
    for kind, asked in groupby(log.timed(), lambda each: each.kind):
        if kind == "receive":
            group = list(asked)
            yield group[0].at, len(group)

"""C5: an operator's settings take effect on a running worker, in the same process."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.services import endpoints
from pgqueue_admin.transport import Endpoint, EndpointSettings
from tests.transport.statements_log import StatementsLog
from tests.waiting import until
from tests.workers.host import House, want
from tests.workers.shop.handlers import TYPE

TOGETHER = "select max(messages) from (select count(*) as messages from handled group by at) as transactions"
COPIES = "select count(*) as copies, count(expires) as mortal from audit"
FAILURES = "select count(*) from messages.message_archive"


@pytest.fixture
def pid(house: House) -> Iterator[int]:
    """The pid of a worker with one slot, which must be the same at the end."""
    want(1, concurrency=1, immediate_retries=0)
    house.supervise()
    (began,) = house.running(1)
    yield began.pid
    assert house.running(1)[0].pid == began.pid


def change(house: House, **settings: Any) -> None:
    """Save the setting and wait until the worker applies it."""
    row = endpoints.save_settings("Sales", settings, "ana", "console")
    house.first("taken", settings_version=row.version)


def send(look: Connection, *bodies: dict[str, Any]) -> None:
    """In one transaction: a peek sees all of them or none."""
    headers = json.dumps({"NServiceBus.EnclosedMessageTypes": TYPE})
    with look.transaction():
        for body in bodies:
            row = [headers, json.dumps(body).encode()]
            look.run('insert into "Sales" (id, headers, body) values (gen_random_uuid(), %s, %s)', row)


def handled(look: Connection, number: int) -> None:
    until(lambda: look.value("select count(*) from handled") == number, what=f"{number} handled")


def held(look: Connection, path: Path) -> int:
    """Visible rows of the queue while a handler has one message in flight."""
    send(look, {"hold": str(path)})
    until(path.with_suffix(".held").exists, what="a handler has it")
    return int(look.value('select count(*) from "Sales"'))


def test_messages_a_transaction(house: House, pid: int, look: Connection) -> None:
    send(look, *[{}] * 10)
    handled(look, 10)
    assert look.value(TOGETHER) == 1
    change(house, batch_size=5)
    send(look, *[{}] * 10)
    handled(look, 20)
    assert look.value(TOGETHER) == 5


def test_the_transaction_mode(house: House, pid: int, look: Connection, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert held(look, first) == 1
    first.touch()
    handled(look, 1)
    change(house, transaction_mode="none")
    assert held(look, second) == 0
    second.touch()


def test_retries(house: House, pid: int, look: Connection) -> None:
    send(look, {"fail": True})
    until(lambda: look.value(FAILURES) == 1, what="given up")
    house.first("after one attempt", failed=1)
    change(house, immediate_retries=2)
    send(look, {"fail": True})
    until(lambda: look.value(FAILURES) == 2, what="given up")
    house.first("after three more", failed=4)


def test_audit_copies(house: House, pid: int, look: Connection, queues: str) -> None:
    audited = Endpoint("Sales", queues, settings=EndpointSettings(audit_queue="audit"))
    audited.create_queues()
    audited.stop()
    send(look, {})
    handled(look, 1)
    change(house, audit_queue="audit")
    send(look, {})
    handled(look, 2)
    assert look.one(COPIES) == (1, 0)
    change(house, audit_ttbr_seconds=3600)
    send(look, {})
    handled(look, 3)
    assert look.one(COPIES) == (2, 1)
    change(house, audit_queue="", audit_ttbr_seconds=None)
    send(look, {})
    handled(look, 4)
    assert look.one(COPIES) == (2, 1)


@pytest.fixture
def log(server: PostgreSQL, look: Connection, sales: Endpoint) -> StatementsLog:
    """Created before any process of ours connects."""
    return StatementsLog(server, look, "Sales")


def test_when_it_peeks_again(log: StatementsLog, house: House, pid: int, look: Connection, tmp_path: Path) -> None:
    change(house, concurrency=2)
    began = busy(look, tmp_path / "receives")
    until(lambda: peeks(log, began) > 1, what="it peeks beside a busy handler")
    (tmp_path / "receives").touch()
    handled(look, 1)
    change(house, repeek_after="handlers")
    began = busy(look, tmp_path / "handlers")
    ten_delays = "select clock_timestamp() > %s + interval '1 s'"
    until(lambda: look.value(ten_delays, [began]), what="ten peek delays later")
    assert peeks(log, began) == 0
    (tmp_path / "handlers").touch()
    handled(look, 2)


def busy(look: Connection, path: Path) -> datetime:
    """A time by the server's clock at which a handler surely had its message in flight."""
    held(look, path)
    began: datetime = look.value("select clock_timestamp()")
    return began


def peeks(log: StatementsLog, since: datetime) -> int:
    return sum(each.kind == "peek" and each.at > since for each in log.timed())


def test_an_outbox(house: House, pid: int, look: Connection) -> None:
    """Switched on at run time; a copy of a handled message has no effect then."""
    change(house, transaction_mode="receive_only")
    send(look, {})
    handled(look, 1)
    postgresql().outbox_store(Address("public", "Sales_OutboxData")).create(look)
    change(house, outbox="pessimistic", outbox_isolation="serializable")
    headers = json.dumps({"NServiceBus.EnclosedMessageTypes": TYPE, "NServiceBus.MessageId": "one"})
    insert = 'insert into "Sales" (id, headers, body) values (gen_random_uuid(), %s, %s)'
    for _ in range(3):
        look.run(insert, [headers, b"{}"])
    until(lambda: look.value('select count(*) from "Sales"') == 0)
    handled(look, 2)
    assert look.value('select "Dispatched" from "Sales_OutboxData" where "MessageId" = %s', ["one"]) is True

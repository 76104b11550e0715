"""PGQUEUE_MASKED_HEADERS also holds for headers that have a column of their own in the archive."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import ingester, store
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.masking import MASKED
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import DataFile
from pgqueue_admin.services.operations import single
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.archived_messages import succeed
from tests.history.events import kept, midnight_passes, moved_back

TYPE, INNER, SAID = "Shop.Secret", "Shop.InnerSecret", "card 4111"
VALUES = {
    h.MESSAGE_ID: "secret-id",
    h.ENCLOSED_MESSAGE_TYPES: "Orders.PlaceSecretly",
    h.PROCESSING_ENDPOINT: "SecretEndpoint",
    h.PROCESSING_MACHINE: "secret-machine",
    h.FAILED_Q: '"public"."SecretQueue"',
    h.TIME_SENT: "2026-11-14 12:26:51:355787 Z",
    h.TIME_OF_FAILURE: "2026-11-15 13:27:52:466898 Z",
    h.EXCEPTION_TYPE: TYPE,
    h.INNER_EXCEPTION_TYPE: INNER,
    h.EXCEPTION_MESSAGE: SAID,
    h.EXCEPTION_SOURCE: "SecretSource",
    h.EXCEPTION_STACK_TRACE: f"{TYPE}: {SAID}\n ---> {INNER}: no\n   at SecretSource.Pay() in C:\\Pay.cs:line 7",
}
ERRORS = Address("public", "error")


@pytest.fixture
def dead(console_database: str, database: Any) -> int:
    """The archive id of a failure whose headers contain all of VALUES."""
    for table in (ERRORS, Address("public", "SecretQueue")):
        database.run(postgresql().queue.create(table=table))
    message = {"id": uuid4(), "ttbr_ms": None, "headers": json.dumps(VALUES), "body": b"{}"}
    database.run(postgresql().queue.send(table=ERRORS), message)
    assert ingester.ingest(database, ERRORS).dead == 1
    return int(database.value("select max(id) from messages.message_archive"))


def mask(settings: Any, *names: str) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "MASKED_HEADERS": list(names)}


def read(database: Any) -> Any:
    """The only row that history reads."""
    batch = planning.plan_batch(database, sources(database)[0])
    assert batch is not None
    (row,) = [row for part in selects(database, batch, 1) for row in database.all(part)]
    return row


def shown(value: Any) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def of(header: str) -> str:
    """The visible text of its value."""
    instant = parse_time(VALUES[header])
    return shown(instant) if instant else VALUES[header].strip('"').rpartition('"')[2]


@pytest.mark.parametrize("header", VALUES)
def test_no_column_has_a_masked_value(header: str, dead: int, database: Any, settings: Any) -> None:
    mask(settings, header)
    found = {name: shown(value) for name, value in read(database)._asdict().items()}
    assert {name for name, value in found.items() if of(header) in value} == set()
    assert header in found["headers"], "it is said that there was one"


def test_without_a_mask_columns_are_as_they_were(dead: int, database: Any, settings: Any) -> None:
    mask(settings, "Another")
    row, archived = read(database), store.get(database, dead)
    assert archived is not None
    same = ("endpoint", "message_id", "message_type", "exception_type", "exception_message", "stack_trace", "sent_at")
    assert [getattr(row, name) for name in same] == [getattr(archived, name) for name in same]
    assert (row.queue, row.ended_at) == (archived.failed_queue, archived.died_at)


@pytest.mark.parametrize("said", ["SecretQueue", '"SecretQueue"', "public.SecretQueue@", "x" * 500])
def test_its_queue_is_the_one_that_the_archive_finds_it_by(said: str, dead: int, database: Any) -> None:
    """However its sender spells it: otherwise Trends would show two queues, neither finding its messages."""
    database.run("delete from messages.message_archive")
    headers = json.dumps({**VALUES, h.FAILED_Q: said})
    message = {"id": uuid4(), "ttbr_ms": None, "headers": headers, "body": b"{}"}
    database.run(postgresql().queue.send(table=ERRORS), message)
    assert ingester.ingest(database, ERRORS).dead == 1
    assert read(database).queue == database.value("select queue from messages.message_archive")


def test_a_failure_stays_one_and_ends_when_it_was_archived(dead: int, database: Any, settings: Any) -> None:
    """Without a type it would be no failure; without an end it would be rejected."""
    mask(settings, *VALUES)
    row, archived = read(database), store.get(database, dead)
    assert archived is not None
    assert (row.exception_type, row.ended_at) == (MASKED, archived.archived_at)
    empty = ("queue", "endpoint", "message_id", "message_type", "exception_message", "stack_trace", "sent_at")
    assert {getattr(row, name) for name in empty} == {None}
    assert set(json.loads(row.headers).values()) == {MASKED}


@pytest.mark.parametrize("header", [h.MESSAGE_ID, h.FAILED_Q, h.PROCESSING_ENDPOINT])
def test_files_of_events_have_none_either(
    header: str, dead: int, database: Any, settings: Any, one_day: None, tmp_path: Path
) -> None:
    mask(settings, header)
    single.act("retry", dead, User.objects.create_superuser("ana"), "console")
    assert succeed(database, dead, VALUES[h.PROCESSING_ENDPOINT])
    sources(database)
    moved_back(database, 1)
    midnight_passes()
    assert kept(database, tmp_path) == 2
    (file,) = DataFile.objects.all()
    rows = pyarrow.parquet.read_table(tmp_path / file.path).to_pylist()
    assert [row["verb"] for row in rows] == ["retried", "succeeded"]
    assert of(header).lower() not in str(rows).lower()
    assert rows[0]["who"] == "ana"

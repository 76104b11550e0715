"""A retried message that dies again is recognised by its message id and the queue that it was returned to."""

from uuid import uuid4

import pytest

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.archive.messages import RETRIED_FROM, DeadMessage
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TableChanged
from pgqueue_admin.transport.wire import headers as h
from tests.archive.conftest import ERROR
from tests.archive.test_dead_messages import BILLING, REFUSED, events, newest, retried_row, send_error
from tests.older_schema import set_back


def test_a_retried_message_that_dies_again_is_a_row_of_its_own(ingested: Connection) -> None:
    dead = newest(ingested, exception=REFUSED)
    dead_messages.retry(ingested, [dead.id], "ana", 7)
    row = retried_row(ingested)
    ingested.run(f"delete from {BILLING} where id = %(id)s", {"id": row.id})
    send_error(ingested, {**h.parse(row.headers), h.FAILED_Q: BILLING, h.EXCEPTION_TYPE: REFUSED})
    ingest(ingested, ERROR)
    former, again = store.get(ingested, dead.id), newest(ingested, message_id=dead.message_id)
    assert former
    assert (former.state, former.resolved_by, again.state) == ("dead_again", "ana", "dead")
    assert again.id != dead.id
    assert events(ingested, dead.id)[-1] == ("archive", "died again", 7, BILLING)


def test_the_copy_of_another_subscriber_that_dies_is_not_this_one_again(ingested: Connection) -> None:
    """All copies of a published event share a message id: by that alone, a waiting copy would be called dead."""
    dead = newest(ingested, exception=REFUSED)
    dead_messages.retry(ingested, [dead.id], "ana")
    send_error(ingested, {**h.parse(retried_row(ingested).headers), h.FAILED_Q: '"public"."Sales"'})
    ingest(ingested, ERROR)
    former = store.get(ingested, dead.id)
    assert former
    assert (former.state, newest(ingested, message_id=dead.message_id).queue) == ("retried", '"public"."Sales"')


def test_a_forged_failure_of_a_message_that_waits_is_not_this_one_again(ingested: Connection) -> None:
    """Anybody who knows its id and queue can forge a failure; the token of our retry tells ours apart."""
    dead = newest(ingested, exception=REFUSED)
    dead_messages.retry(ingested, [dead.id], "ana", ours=lambda address: True)
    true = h.parse(retried_row(ingested).headers)
    for token in ("", str(dead.id), f"{dead.id} {uuid4()}"):
        send_error(ingested, {**true, RETRIED_FROM: token, h.FAILED_Q: BILLING, h.EXCEPTION_TYPE: REFUSED})
    ingest(ingested, ERROR)
    assert state(ingested, dead.id) == "retried"
    send_error(ingested, {**true, h.FAILED_Q: BILLING, h.EXCEPTION_TYPE: REFUSED})
    ingest(ingested, ERROR)
    assert state(ingested, dead.id) == "dead_again"


def test_tables_of_a_version_before_take_nothing(ingested: Connection) -> None:
    """Between the program's upgrade and engine_schema, dead messages stay where they are."""
    dead = newest(ingested, exception=REFUSED)
    set_back(ingested, 7)
    waiting = ingested.value(f"select count(*) from {BILLING}")
    with pytest.raises(TableChanged):
        dead_messages.retry(ingested, [dead.id], "ana")
    with pytest.raises(TableChanged):
        store.archive_failed(ingested, DeadMessage(queue=BILLING, exception_type=REFUSED))
    assert ingested.value(f"select count(*) from {BILLING}") == waiting


def state(connection: Connection, archive_id: int) -> str:
    found = store.get(connection, archive_id)
    assert found
    return str(found.state)

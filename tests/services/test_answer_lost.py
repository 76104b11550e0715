"""A message is moved out and the COMMIT's answer is lost: a committed act is not reported as rolled back."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from pgqueue_admin.archive import store
from pgqueue_admin.archive.edited_retry import EditedMessage
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.models import AuditEntry, Operation, crashing_messages
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.edited_retry import EditChanges, edited_as, retry_edited
from pgqueue_admin.services.operations import crashing_message as acts
from pgqueue_admin.services.operations import lifecycle, queries, reconcile, selection, single
from pgqueue_admin.services.operations.errors import OperationRefused, OutcomeUnknown
from tests.archived_messages import BILLING, REFUSED, dead
from tests.crashing_messages import crashing_message
from tests.databases import Databases
from tests.hostile.proxy import Proxy
from tests.lost_commit import WAITS, end_who_waits, nobody_stands_by, who_inserts_waits
from tests.waiting import PATIENCE, until

Connect = Callable[[str], Connection]
WAITS_FOR_IT = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


@pytest.fixture
def session(archived_console: str, connect: Connect, server: PostgreSQL) -> Iterator[Connection]:
    connection = connect(archived_console)
    who_inserts_waits(connection, "messages.archive_event")
    with nobody_stands_by(connect(server.dsn())):
        yield connection


@pytest.fixture
def row(session: Connection, archived_console: str) -> Any:
    return crashing_message(session, archived_console, name="Deadly")


@pytest.fixture
def wire(archived_console: str, databases: Databases) -> Iterator[Proxy]:
    """A relay between the console and the queues."""
    proxy = Proxy(archived_console)
    with databases.as_django(proxy.dsn, ("queues",)):
        yield proxy
    proxy.cut()


@contextmanager
def pressed(session: Connection, row: Any, person: User) -> Iterator[list[Any]]:
    """Inside the block its COMMIT is durable and waits for its answer; after it the list has the message shown."""
    said: list[Any] = []
    pressing = threading.Thread(target=press, args=(row, person, said))
    pressing.start()
    until(lambda: session.one(WAITS) or said, what="COMMIT waits")
    assert said == []
    yield said
    pressing.join(PATIENCE)
    assert len(said) == 1


def press(row: Any, person: User, said: list[Any]) -> None:
    act = row if callable(row) else lambda: acts.move_out(row.id, person, "console", "it segfaults")
    try:
        said.append(act())
    except Exception as error:
        said.append(error)
    connections.close_all()


def assert_moved_and_audited(session: Connection, row: Any, said: Any) -> None:
    assert isinstance(said, acts.MovedMessage), said
    dead = store.get(session, said.archive_id)
    assert (dead and dead.row_id) == row.id
    [entry] = AuditEntry.objects.filter(verb="move out")
    assert (entry.who, entry.reason) == ("ana", "it segfaults")
    assert entry.after == {"archive_id": said.archive_id, "row_id": str(row.id), "deaths": 3}
    assert crashing_messages.suspects() == []


def test_move_committed_before_its_session_ended_counts(session: Connection, row: Any, ana: User) -> None:
    with pressed(session, row, ana) as said:
        end_who_waits(session)
    assert_moved_and_audited(session, row, said[0])


def test_move_with_its_commit_under_way_is_waited_for(session: Connection, row: Any, ana: User, wire: Proxy) -> None:
    with pressed(session, row, ana) as said:
        wire.break_off()
        until(lambda: session.one(WAITS_FOR_IT) or said, what="it is looked up")
        end_who_waits(session)
    assert_moved_and_audited(session, row, said[0])


def test_move_that_cannot_be_looked_up_has_an_unknown_outcome(
    session: Connection, row: Any, ana: User, wire: Proxy
) -> None:
    with pressed(session, row, ana) as said:
        with wire.down():
            until(lambda: said, what="it is said")
        end_who_waits(session)
    assert isinstance(said[0], OutcomeUnknown)
    assert str(said[0]).startswith("It may have been moved")


def test_move_not_committed_before_its_session_ended_is_undone(
    session: Connection, row: Any, ana: User, connect: Connect, archived_console: str
) -> None:
    said: list[Any] = []
    other = connect(archived_console)
    with other.transaction():
        other.run("lock table messages.archive_event")
        pressing = threading.Thread(target=press, args=(row, ana, said))
        pressing.start()
        until(lambda: session.one(WAITS_FOR_IT), what="it waits in its act")
        end = "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'"
        session.run(f"{end} and datname = current_database()")
        until(lambda: not session.one(WAITS_FOR_IT), what="it is gone")
    pressing.join(PATIENCE)
    assert isinstance(said[0], OperationRefused)
    assert str(said[0]).startswith("Nothing was moved. The database does not answer.")
    assert session.value('select count(*) from "Deadly"') == 1
    assert not AuditEntry.objects.exists()


def test_a_retry_of_one_that_cannot_be_looked_up_is_not_called_undone(
    session: Connection, ana: User, wire: Proxy
) -> None:
    (message,), before = dead(1, exception=REFUSED), session.value(f"select count(*) from {BILLING}")
    with pressed(session, lambda: single.act("retry", message.id, ana, "console"), ana) as said:
        with wire.down():
            until(lambda: said, what="it is said")
        end_who_waits(session)
    assert isinstance(said[0], OutcomeUnknown), said
    assert str(said[0]).startswith("Whether it was retried is not known. Look at the message")
    until(lambda: session.value(f"select count(*) from {BILLING}") == before + 1, what="it is there")
    reconcile.settle()
    operation = Operation.objects.get()
    assert (operation.state, operation.done) == (Operation.State.CANCELLED, 1), "where it is looked for it is told"


def test_an_edited_one_whose_answer_was_lost_is_in_the_audit(session: Connection, ana: User) -> None:
    (message,) = dead(1, exception=REFUSED)
    changes = EditChanges({}, {"Own": "x"}, None)
    edited, billing = EditedMessage({"Own": "x"}, b"{}"), Address("public", "Billing")

    def send() -> Any:
        return retry_edited(message.id, BILLING, edited, billing, ana, "console", "misspelt", changes)

    with pressed(session, send, ana) as said:
        end_who_waits(session)
    assert isinstance(said[0], OutcomeUnknown), said
    entry = AuditEntry.objects.get(verb="edit")
    assert (entry.who, entry.reason, entry.count) == ("ana", "misspelt", 1)
    assert entry.after
    assert (entry.after["outcome"], entry.after["archive_id"]) == ("not known", message.id)
    sent_as = edited_as(message.id)
    assert session.value(f"select count(*) from {BILLING} where headers like %(id)s", {"id": f"%{sent_as}%"}) == 1


def test_frozen_set_kept_by_an_outage_is_dropped_later(ana: User, wire: Proxy) -> None:
    operation = selection.freeze("retry", [dead(1)[0].id], ana, "console")
    with wire.down():
        assert lifecycle.cancel(operation.pk, ana).keeps_set
    with queue_database().read_session() as connection:
        assert len(queries.items(connection, operation.pk)) == 1
        reconcile.settle()
        assert queries.items(connection, operation.pk) == []
    assert not Operation.objects.get().keeps_set

"""The port for exhausted messages: runs in the receive transaction, and may refuse (wire sheet 8.1)."""

from dataclasses import replace
from uuid import UUID

import pytest

from pgqueue_admin.transport import Unrecoverable
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.transport.test_failing import PLACE, Declined, failing
from tests.waiting import until

ARCHIVING = replace(QUICK, on_exhausted="archive")


@pytest.fixture
def archive():
    """An exhausted port that records what it gets, in the transaction it gets."""

    class Archive:
        def __init__(self):
            self.taken, self.refusals = [], 0

        def __call__(self, connection, message, failure):
            connection.run("create table if not exists archived (row_id uuid, attempts integer)")
            connection.run("insert into archived values (%s, %s)", [message.row_id, failure.attempts])
            if self.refusals:
                self.refusals -= 1
                connection.run("select from nowhere")
            self.taken.append((message, failure))

    return Archive()


def test_the_archive_is_called_inside_the_receive_transaction(make_endpoint, handlers, archive, connection):
    endpoint = make_endpoint(settings=ARCHIVING, exhausted=archive)
    failing(handlers, Declined("no"))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: archive.taken)
    until(lambda: not rows(endpoint.dsn, "Sales"))
    ((message, failure),) = archive.taken
    assert (failure.attempts, failure.endpoint, failure.queue) == (6, "Sales", message.queue)
    assert [tuple(row) for row in connection.all("select * from archived")] == [(UUID(message.row_id), 6)]
    assert rows(endpoint.dsn, "error") == []


def test_an_archive_that_refuses_loses_nothing(make_endpoint, handlers, archive, connection, caplog):
    """The message stays, others are handled meanwhile, and it is archived once when the archive works again."""
    archive.refusals = 1
    endpoint = make_endpoint(settings=ARCHIVING, exhausted=archive)
    failing(handlers, Unrecoverable("no"))
    handled = []
    handlers.handle("Shop.Fine")(lambda message, context: handled.append(message))
    endpoint.send("Sales", {}, type=PLACE)
    for number in range(20):
        endpoint.send("Sales", number, type="Shop.Fine")
    endpoint.start()
    until(lambda: len(handled) == 20)
    until(lambda: archive.taken)
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert connection.value("select count(*) from archived") == 1
    assert "could not be put away" in caplog.text


def test_an_archive_that_a_call_does_not_run_loses_nothing(make_endpoint, handlers, caplog):
    """An ``async def``, whose call does nothing: the message would be lost."""

    async def archive(connection, message, failure):
        raise AssertionError("never run")

    endpoint = make_endpoint(settings=ARCHIVING, exhausted=archive)
    failing(handlers, Unrecoverable("no"))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: "could not be put away" in caplog.text)
    endpoint.stop(0)
    until(lambda: rows(endpoint.dsn, "Sales"))
    assert "is async, or a generator" in caplog.text


def test_without_an_archive_it_is_the_error_queue(make_endpoint, handlers):
    endpoint = make_endpoint(settings=ARCHIVING, exhausted=None)
    failing(handlers, Unrecoverable("no"))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))

"""Several consoles on one archive: numbers of operations are each console's own, sets lie beside the queues of all."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pgqueue_admin.archive.model import Filter
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.operations import service
from pgqueue_admin.records.models import Operation
from pgqueue_admin.records.source import source
from tests.databases import Databases
from tests.dead_ones import BILLING, REFUSED, dead, number_in

State = Operation.State
Other = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def other(databases: Databases, archive: None) -> Iterator[Other]:
    """As another console: its own database, the same queues."""
    with databases.clone("console") as dsn:
        yield partial(databases.as_django, dsn, ("default",))


def frozen(person: User | str) -> Operation:
    return service.freeze("retry", Filter(exception=REFUSED), person, "console", "gateway is back")


def cancel(operation: Operation) -> None:
    service.cancel(operation.pk, "ana")


def let_lapse(operation: Operation) -> None:
    Operation.objects.filter(pk=operation.pk).update(created_at=timezone.now() - timedelta(minutes=31))
    assert service.lapse() == 1


@pytest.mark.parametrize("give_up", [cancel, let_lapse])
def test_a_number_that_one_console_gave_up_is_another_ones(other: Other, give_up: Callable[[Operation], None]) -> None:
    ours = frozen("ana")
    give_up(ours)
    with other():
        theirs = frozen("bob")
        assert (theirs.pk, theirs.count) == (ours.pk, 88)
    tasks.lapse_operations()
    with other():
        service.start(theirs.pk, "bob")
        service.run(theirs.pk)
        theirs.refresh_from_db()
    assert (theirs.state, theirs.done, theirs.last_error) == (State.DONE, 88, "")


@pytest.mark.parametrize("done", [0, 30])
def test_one_whose_set_is_gone_is_not_called_done(ana: User, done: int) -> None:
    operation, before = frozen(ana), number_in(BILLING)
    service.start(operation.pk, ana)
    if done:
        service.run_chunk(operation.pk, done)
    with source().writing() as connection:
        connection.run("delete from messages.operation_item where outcome is null")
    service.run(operation.pk)
    service.settle()
    operation.refresh_from_db()
    assert (operation.state, operation.cancelled_by, operation.done) == (State.CANCELLED, "the console", done)
    assert operation.last_error.startswith(f"{88 - done} of its 88 messages are in its set no more")
    assert number_in(BILLING) == before + done
    assert len(dead(100, exception=REFUSED)) == 88 - done
    with pytest.raises(service.AlreadyDecided, match="the console cancelled operation"):
        service.start(operation.pk, ana)

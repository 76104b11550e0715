"""One operation and several processes at the same instant: one acts while another cancels, two count."""

import threading
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Operation
from pgqueue_admin.services.operations import lifecycle, runner, selection
from tests.archived_messages import BILLING, REFUSED, number_in
from tests.waiting import PATIENCE, held_up, until


@pytest.fixture
def other(archived_console: str, connect: Callable[[str], Connection]) -> Connection:
    """A session of another process."""
    return connect(archived_console)


@pytest.fixture
def operation(ana: User) -> Operation:
    """A started retry of 88 messages."""
    return lifecycle.start(selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console").pk, ana)


def begun(act: Callable[[int], object], operation: Operation) -> threading.Thread:
    def run() -> None:
        act(operation.pk)
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_chunk_looks_again_before_it_acts(operation: Operation, other: Connection) -> None:
    """It was cancelled after it was found running: messages would be sent although the user was told they stay."""
    before = number_in(BILLING)
    with other.transaction():
        lock = "select pg_advisory_xact_lock(hashtext('pgqueue operation'), %s::integer)"
        other.run(lock, [operation.pk])
        chunk = begun(runner.run_chunk, operation)
        until(lambda: held_up(other), what="the chunk begins")
        lifecycle.cancel(operation.pk, "bob")
    chunk.join(PATIENCE)
    operation.refresh_from_db()
    assert (operation.state, operation.done) == (Operation.State.CANCELLED, 0)
    assert number_in(BILLING) == before


def test_recount_locks_the_operation_before_counting(operation: Operation, other: Connection) -> None:
    """Otherwise a count from before a chunk overwrites one from after it."""
    with transaction.atomic():
        Operation.objects.select_for_update().get(pk=operation.pk)
        counting = begun(runner.recount, operation)
        until(lambda: held_up(other), what="it waits for its turn")
        assert runner.run_chunk(operation.pk, 40)
    counting.join(PATIENCE)
    operation.refresh_from_db()
    assert (operation.state, operation.done) == (Operation.State.RUNNING, 40)

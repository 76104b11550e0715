"""Several consoles on one archive: each has its own operation numbers; sets are stored beside the shared queues."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client
from django.utils import timezone

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, queries, reconcile, runner, selection
from pgqueue_admin.services.operations.errors import AlreadyDecided
from tests.archived_messages import BILLING, REFUSED, dead, number_in, person
from tests.console.sampled import elsewhere
from tests.databases import Databases

State = Operation.State
Other = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def other(databases: Databases, archive: None) -> Iterator[Other]:
    """Act as another console: its own database, the same queues."""
    with databases.clone("console") as dsn:
        yield partial(databases.as_django, dsn, ("default",))


def frozen(person: User | str) -> Operation:
    return selection.freeze("retry", ArchiveFilter(exception=REFUSED), person, "console", "gateway is back")


def cancel(operation: Operation) -> None:
    lifecycle.cancel(operation.pk, "ana")


def let_lapse(operation: Operation) -> None:
    Operation.objects.filter(pk=operation.pk).update(created_at=timezone.now() - timedelta(minutes=31))
    assert selection.lapse() == 1


@pytest.mark.parametrize("give_up", [cancel, let_lapse])
def test_a_number_that_one_console_gave_up_is_no_other_ones(other: Other, give_up: Callable[[Operation], None]) -> None:
    """Its set is dropped; reusing its number would show another console's acts as this one's."""
    ours = frozen("ana")
    give_up(ours)
    assert not left_of(ours)
    with other():
        theirs = frozen("bob")
        assert (theirs.pk > ours.pk, theirs.count) == (True, 88)
        lifecycle.start(theirs.pk, "bob")
        runner.run(theirs.pk)
        theirs.refresh_from_db()
    assert (theirs.state, theirs.done, theirs.last_error) == (State.DONE, 88, "")
    assert not dead(operation=ours.pk), "what keeps the number names no message"


@contextmanager
def as_clerk(but: str = "") -> Iterator[None]:
    """The console as a role with the usual rights on tables that another role owns."""
    clerk = f"clerk_{uuid4().hex}"  # roles belong to the server, which other tests use too
    with connections["default"].cursor() as cursor:
        cursor.execute(f"create role {clerk} login password 'clerk'")
        cursor.execute(f"grant usage on schema pgqueue_console to {clerk}")
        cursor.execute(f"grant select, insert, update, delete on all tables in schema pgqueue_console to {clerk}")
        cursor.execute(f"grant usage on all sequences in schema pgqueue_console to {clerk}")
        if but:
            cursor.execute(f"revoke {but} from {clerk}")
    try:
        with elsewhere("default", USER=clerk, PASSWORD="clerk"):
            yield
    finally:
        with connections["default"].cursor() as cursor:
            cursor.execute(f"drop owned by {clerk}")
            cursor.execute(f"drop role {clerk}")


def test_numbers_of_another_console_are_passed_over_with_the_usual_rights(other: Other) -> None:
    with other():
        theirs = [frozen("bob").pk for _ in range(5)]
    with as_clerk():
        assert frozen("ana").pk > max(theirs)
        assert frozen("ana").pk == max(theirs) + 2, "the first one took a number to know where it is"


def test_a_right_that_is_missing_is_told_as_that(ana: User) -> None:
    client, (message,) = Client(), dead(1, exception=REFUSED)
    client.force_login(ana)
    with as_clerk(but="insert on pgqueue_console.pgqueue_operation"):
        with pytest.raises(CommandError, match="permission denied for table pgqueue_operation") as refused:
            call_command("dead", "discard", str(message.id), "--yes")
        page = client.post("/operations/", {"act": "discard", "id": message.id}, follow=True)
    assert refused.value.returncode == 5
    assert "Nothing was discarded. permission denied" in page.content.decode()


def left_of(operation: Operation) -> list[Any]:
    with queue_database().read_session() as connection:
        return queries.items(connection, operation.pk)


def as_older_versions_did() -> None:
    """They dropped a set that was never started together with its number."""
    with queue_database().write_session() as connection:
        connection.run("delete from messages.operation_item where why = 'Never started.'")


def test_a_set_of_another_console_under_a_number_of_ours_stays(other: Other) -> None:
    ours = frozen("ana")
    cancel(ours)
    as_older_versions_did()
    with other():
        theirs = frozen("bob")
        assert (theirs.pk, theirs.count) == (ours.pk, 88)
    tasks.lapse_operations()
    with other():
        lifecycle.start(theirs.pk, "bob")
        runner.run(theirs.pk)
        theirs.refresh_from_db()
    assert (theirs.state, theirs.done, theirs.last_error) == (State.DONE, 88, "")


@pytest.mark.parametrize("is_known_here", [True, False])
def test_act_of_another_console_is_shown_as_that_consoles(other: Other, is_known_here: bool) -> None:
    """Its number may be one of ours that was never started, or unknown here."""
    if is_known_here:
        cancel(frozen("ana"))
        as_older_versions_did()
    (message,) = dead(1, exception=REFUSED)
    with other():
        theirs = selection.freeze("discard", [message.id], "bob", "console")
        lifecycle.start(theirs.pk, "bob")
        runner.run(theirs.pk)
    client = Client()
    client.force_login(person("ivo"))
    told = client.get(f"/archive/{message.id}/").content.decode()
    assert told.count(f"operation {theirs.pk} of another console") == 2, "the timeline and the history"
    assert f"/operations/{theirs.pk}/" not in told
    page = client.get(f"/operations/{theirs.pk}/")
    assert page.status_code == (200 if is_known_here else 404)
    assert "They are now" not in page.content.decode()


@pytest.mark.parametrize("done", [0, 30])
def test_operation_whose_items_are_gone_is_cancelled_not_done(ana: User, done: int) -> None:
    operation, before = frozen(ana), number_in(BILLING)
    lifecycle.start(operation.pk, ana)
    if done:
        runner.run_chunk(operation.pk, done)
    with queue_database().write_session() as connection:
        connection.run("delete from messages.operation_item where outcome is null")
    runner.run(operation.pk)
    reconcile.settle()
    operation.refresh_from_db()
    assert (operation.state, operation.cancelled_by, operation.done) == (State.CANCELLED, "the console", done)
    assert operation.last_error.startswith(f"{88 - done} of its 88 messages are in its set no more")
    assert number_in(BILLING) == before + done
    assert len(dead(100, exception=REFUSED)) == 88 - done
    with pytest.raises(AlreadyDecided, match="the console cancelled operation"):
        lifecycle.start(operation.pk, ana)

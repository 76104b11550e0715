"""Moving a crashing message out: with the right to do so, once, recording the user and the reason."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import store
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, crashing_messages
from pgqueue_admin.services.operations import crashing_message as acts
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from tests.crashing_messages import HOW, crashing_message


@pytest.fixture
def session(archived_console: str) -> Any:
    with postgresql().connect(archived_console, for_handlers=True) as connection:
        yield connection


@pytest.fixture
def row(session: Connection, archived_console: str) -> Any:
    return crashing_message(session, archived_console, name="Deadly")


def test_crashing_message_is_moved_audited_and_no_longer_suspect(session: Connection, row: Any, ana: User) -> None:
    moved = acts.move_out(row.id, ana, "console", "it segfaults")
    assert session.value('select count(*) from "Deadly"') == 0
    dead = store.get(session, moved.archive_id)
    assert dead is not None
    assert dead.exception_message == f"In flight at 3 deaths of its process; the last was {HOW}. Moved out by ana."
    entry = AuditEntry.objects.get(verb="move out")
    assert (entry.who, entry.noun, entry.subject, entry.reason) == (
        "ana",
        "message",
        '"public"."Deadly"',
        "it segfaults",
    )
    assert entry.after == {"archive_id": moved.archive_id, "row_id": str(row.id), "deaths": 3}
    assert crashing_messages.suspects() == []


def test_a_second_press_finds_nothing_to_move(row: Any, ana: User) -> None:
    acts.move_out(row.id, ana, "console")
    with pytest.raises(OperationRefused, match=r"Nothing was moved. It is in Deadly no more."):
        acts.move_out(row.id, ana, "console")
    assert AuditEntry.objects.filter(verb="move out").count() == 1


def test_a_viewer_may_not(session: Connection, row: Any, viewer: User) -> None:
    said = "Nothing was moved: needs the right “Can discard and restore dead messages”, which an administrator gives"
    with pytest.raises(OperationNotAllowed, match=said):
        acts.move_out(row.id, viewer, "console")
    assert session.value('select count(*) from "Deadly"') == 1


def test_a_schema_that_is_watched_no_more_is_left(session: Connection, row: Any, ana: User, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["elsewhere"]}
    with pytest.raises(OperationRefused, match=r"Nothing was moved. The schema public is not watched here"):
        acts.move_out(row.id, ana, "console")
    assert session.value('select count(*) from "Deadly"') == 1


def test_crashing_message_in_flight_is_not_moved(session: Connection, row: Any, ana: User) -> None:
    with session.transaction():
        session.run('select from "Deadly" for update')
        with pytest.raises(OperationRefused, match="It is in flight at this moment"):
            acts.move_out(row.id, ana, "console")
    assert len(crashing_messages.suspects()) == 1


def test_other_message_with_the_same_id_is_not_moved(session: Connection, row: Any, ana: User) -> None:
    """A row copied back gives its id to a message that crashed no process."""
    session.run('update "Deadly" set seq = seq + 1000')
    with pytest.raises(OperationRefused, match="Nothing was moved"):
        acts.move_out(row.id, ana, "console")
    assert session.value('select count(*) from "Deadly"') == 1


def test_no_other_message_can_be_named(session: Connection, row: Any, ana: User) -> None:
    """Only messages that crashed a process: this act takes no other message out of a queue."""
    other = session.value('select id from "Billing" limit 1')
    with pytest.raises(OperationRefused, match="No process is known to have ended"):
        acts.move_out(other, ana, "console")
    assert session.value('select count(*) from "Billing" where id = %s', [other]) == 1


def test_crashing_message_stays_without_the_archives_tables(session: Connection, row: Any, ana: User) -> None:
    session.run("drop schema messages cascade")
    with pytest.raises(OperationRefused, match="Nothing was moved"):
        acts.move_out(row.id, ana, "console")
    assert session.value('select count(*) from "Deadly"') == 1
    assert len(crashing_messages.suspects()) == 1

"""With a SELECT-only role, admin offers no act that the database would refuse; hostile text stays in its row."""

import re
import secrets
from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import AuditEntry, Operation, database_role
from pgqueue_admin.services.operations import selection
from tests.archived_messages import REFUSED, dead
from tests.console.sampled import elsewhere
from tests.hostile.payloads import TURNED
from tests.waiting import until

SignIn = Callable[..., Client]
LIST = "/admin/pgqueue/archivedmessage/"


@pytest.fixture
def only_select(archived_console: str, connect: Callable[[str], Connection]) -> Iterator[str]:
    """Connect to the queue database as a SELECT-only role; yield its name."""
    owner, name = connect(archived_console), f"reader_{secrets.token_hex(4)}"
    owner.run(f"create role {name} login password 'looks'; grant pg_read_all_data to {name}")
    with elsewhere("queues", USER=name, PASSWORD="looks"):
        until(database_role.current, 20, "the database was asked")
        yield name
    owner.run(f"drop role {name}")


def test_role_that_may_only_insert_is_offered_acts(archived_console: str, connect: Callable[[str], Connection]) -> None:
    """The role inserts into queues and cannot take from them: least privilege, as an administrator grants it."""
    owner, name = connect(archived_console), f"putter_{secrets.token_hex(4)}"
    owner.run(
        f'create table "Input" (); create role {name} login password \'looks\'; grant insert on "Input" to {name}'
    )
    with elsewhere("queues", USER=name, PASSWORD="looks"):
        known = until(database_role.current, 20, "the database was asked")
    assert (known.name, known.refusal) == (name, "")
    owner.run(f'drop owned by {name}; drop role {name}; drop table "Input"')


def test_role_that_may_update_only_the_archive_is_offered_acts(
    only_select: str, archived_console: str, connect: Callable[[str], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(archived_console).run(f"grant update on messages.message_archive to {only_select}")
    monkeypatch.setattr(database_role, "FRESH_SECONDS", 0)
    assert until(database_role.current).refusal == ""
    connect(archived_console).run(f"drop owned by {only_select}; grant pg_read_all_data to {only_select}")


def test_a_refusal_that_is_old_is_not_told_any_more(
    only_select: str, archived_console: str, connect: Callable[[str], Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = until(database_role.current, 20, "the database was asked")
    assert refused.refusal
    connect(archived_console).run(f"grant pg_write_all_data to {only_select}")
    monkeypatch.setattr(database_role, "FRESH_SECONDS", 0)
    told = database_role.current()
    assert told is None or not told.refusal


def test_actions_are_not_offered_and_why_is_said(sign_in: SignIn, only_select: str) -> None:
    page = sign_in("ana").get(LIST).content.decode()
    assert f"Nothing can be retried, discarded or restored: the database role {only_select} may only SELECT." in page
    assert 'name="action"' not in page
    assert "action-select" not in page


def test_action_posted_by_a_read_only_role_does_nothing(sign_in: SignIn, only_select: str) -> None:
    asked = {"action": "retry", "_selected_action": [dead(exception=REFUSED)[0].id]}
    page = sign_in("ana").post(LIST, asked, follow=True).content.decode()
    assert "may only SELECT" in page
    assert not Operation.objects.exists()


def test_operation_frozen_before_the_role_lost_writes_stays_frozen(
    sign_in: SignIn, request: pytest.FixtureRequest
) -> None:
    client = sign_in("ana")
    operation = selection.freeze("retry", [dead(exception=REFUSED)[0].id], "ana", "admin")
    name = request.getfixturevalue("only_select")
    page = client.post(f"/admin/pgqueue/operation/{operation.pk}/confirm/", {"go": "yes"}, follow=True)
    assert f"Nothing was retried: the database role {name} may only SELECT." in page.content.decode()
    operation.refresh_from_db()
    assert operation.state == "frozen"


def test_text_that_turns_others_around_is_marked(sign_in: SignIn) -> None:
    entry = AuditEntry.objects.create(who="ana", verb="set", noun="queue", subject=TURNED, origin="console")
    client = sign_in("ana", is_superuser=True)
    for path in ("/admin/pgqueue/auditentry/", f"/admin/pgqueue/auditentry/{entry.pk}/change/"):
        page = client.get(path).content.decode()
        assert "‹U+202E›gnp‹U+202C›‹U+2066›exe‹U+200B›‹U+FEFF›" in page
        assert not re.search("[\u202a-\u202e\u2066-\u2069]", page)

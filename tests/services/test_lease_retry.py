"""Dead lease messages are retried by an insert; both rows refer to each other, and the archive has the outcome."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import lease_retry
from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import EngineTablesOlder
from pgqueue_admin.housekeeping import failure_groups
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry, MaskingRule, Operation
from pgqueue_admin.services import content_access
from pgqueue_admin.services.operations import edits, lifecycle, queries, runner, selection, single
from pgqueue_admin.services.operations.plans import Planned
from tests.archived_messages import OPERATOR, person
from tests.lease import original
from tests.older_schema import set_back
from tests.staged_retries import Clock, classes, look, plan_of, planned

LEASE = '"messages"."message"'
Connect = Callable[..., Connection]


@pytest.fixture(autouse=True)
def archive(console_database: str, settings: Any) -> str:
    """Replaces this folder's fixture: no transport messages."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    return console_database


@pytest.fixture
def editor(archive: str) -> User:
    return person("ed", *OPERATOR, "read_message")


def failed(queue: LeaseQueue, *messages: Any) -> list[int]:
    """Their archive ids."""
    queue.publish_many(messages)
    ended = [queue.finish(lease, "failed", "no encoder") for lease in queue.claim(len(messages))]
    return [each.archive_id for each in ended if each and each.archive_id]


def row(session: Connection, archive_id: int) -> Any:
    return session.one("select * from messages.message_archive where id = %(id)s", {"id": archive_id})


def verbs(session: Connection, archive_id: int) -> list[str]:
    asked = "select verb from messages.archive_event where archive_id = %(id)s order by id"
    return [each.verb for each in session.all(asked, {"id": archive_id})]


def test_retried_message_goes_back_unchanged_and_both_are_linked(
    queue: LeaseQueue, session: Connection, ana: User
) -> None:
    message = {"kind": "render", "big": 12345678901234567890, "text": "ü"}
    (archived,) = failed(queue, message)
    outcome = single.act("retry", archived, ana, "console")
    assert (outcome.result, outcome.target) == ("done", LEASE)
    waiting = session.one("select * from messages.message")
    assert waiting is not None
    assert (waiting.message, waiting.retried_from, waiting.attempts) == (message, archived, 0)
    assert lease_retry.retried_as(session, archived) == waiting.id != int(row(session, archived).message_id)
    assert row(session, archived).state == "retried"
    assert AuditEntry.objects.get(verb="retry").who == "ana"
    assert single.act("retry", archived, ana, "console").result == "skipped"
    assert session.value("select count(*) from messages.message") == 1


@pytest.mark.parametrize(
    ("result", "became", "said"),
    [
        ("success", "succeeded", "succeeded"),
        ("failed", "dead_again", "died again"),
        ("rejected", "dead_again", "died again"),
    ],
)
def test_how_it_ends_stands_at_its_former_row(
    queue: LeaseQueue, session: Connection, ana: User, result: Any, became: str, said: str
) -> None:
    (archived,) = failed(queue, 1)
    single.act("retry", archived, ana, "console")
    (lease,) = queue.claim(1)
    queue.finish(lease, result)
    assert (row(session, archived).state, verbs(session, archived)) == (became, ["retried", said])


def test_a_success_that_is_not_archived_is_one_too(queue: LeaseQueue, session: Connection, ana: User) -> None:
    (archived,) = failed(queue, 1)
    single.act("retry", archived, ana, "console")
    (lease,) = queue.claim(1)
    queue.finish(lease, "success", archive_success=False)
    assert row(session, archived).state == "succeeded"


def test_an_expired_lock_makes_it_dead_again(queue: LeaseQueue, session: Connection, ana: User) -> None:
    (archived,) = failed(queue, 1)
    single.act("retry", archived, ana, "console")
    (lease,) = queue.claim(1)
    queue.renew(lease, 1e-6)
    queue.expire()
    assert row(session, archived).state == "dead_again"


def test_an_original_worker_tells_it_too(queue: LeaseQueue, session: Connection, ana: User, archive: str) -> None:
    (archived,) = failed(queue, ["ok"])
    single.act("retry", archived, ana, "console")
    with psycopg.connect(archive, autocommit=True) as worker:
        worker.execute("set timezone = 'UTC'")
        taken = original.retrieve(worker, session.value("select id from messages.message"))
        original.finish(worker, taken, "success")
    assert row(session, archived).state == "succeeded"


def test_retried_message_deleted_by_hand_stays_retried(queue: LeaseQueue, session: Connection, ana: User) -> None:
    (archived,) = failed(queue, 1)
    single.act("retry", archived, ana, "console")
    session.run("delete from messages.message")
    assert row(session, archived).state == "retried"


def test_a_worker_without_the_right_to_note_it_ends_it_all_the_same(
    queue: LeaseQueue, session: Connection, ana: User, archive: str, connect: Connect
) -> None:
    (archived,) = failed(queue, 1)
    single.act("retry", archived, ana, "console")
    session.run("drop role if exists lease_ending; create role lease_ending")
    session.run("grant usage on schema messages to lease_ending; grant all on messages.message to lease_ending")
    session.run("grant select, insert on messages.message_archive to lease_ending")
    session.run("grant usage on all sequences in schema messages to lease_ending")
    (lease,) = queue.claim(1)
    worker = connect(archive)
    worker.run("set role lease_ending")
    assert queue.on(worker).finish(lease, "success")
    assert row(session, archived).state == "retried"
    assert session.value("select count(*) from messages.message_archive where result = 'success'") == 1
    worker.run("reset role")
    session.run("drop owned by lease_ending; drop role lease_ending")


def test_many_are_one_operation(queue: LeaseQueue, session: Connection, ana: User) -> None:
    archived = failed(queue, *range(30))
    operation = selection.freeze("retry", ArchiveFilter(kind="lease"), ana, "console", "encoder is back")
    (goes_to,) = queries.retry_targets(session, operation).all
    assert (goes_to.target.name, goes_to.messages, goes_to.target.refusal()) == (LEASE, 30, "")
    lifecycle.start(operation.pk, ana, "encoder is back")
    while runner.run_chunk(operation.pk):
        pass
    operation = Operation.objects.get(pk=operation.pk)
    assert (operation.state, operation.done, operation.failed) == ("done", 30, 0)
    back = {each.retried_from: each.message for each in session.all("select * from messages.message")}
    assert back == dict(zip(archived, range(30), strict=True))


def test_edit_of_many_changes_one_field_and_links_each(queue: LeaseQueue, session: Connection, editor: User) -> None:
    kept = {"kind": "render", "big": 12345678901234567890, "asset": "ü"}
    first, second, unlike, other = failed(queue, {**kept, "width": "1"}, {**kept, "width": 7}, ["render"], {"width": 8})
    (huge,) = failed(queue, {"width": "x" * 500_000})
    operation = selection.freeze("retry", ArchiveFilter(kind="lease"), editor, "console", "misspelt")
    edit = MessageEdit("field", "width", "set", "7", is_json=True)
    looked = edits.look(session, operation, edit, content_access.ALL)
    assert looked.counts == {"changed": 2, "same": 1, "lacks": 1, "unread": 1}
    assert looked.new_kinds == 1
    edits.propose(operation.pk, edit, editor)
    lifecycle.start(operation.pk, editor, "misspelt")
    runner.run(operation.pk)
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.failed, operation.skipped) == ("done", 2, 1, 2)
    back = {
        each.retried_from: each for each in session.all("select m.*, m.message::text as said from messages.message m")
    }
    assert {archived: each.message for archived, each in back.items()} == {
        first: {**kept, "width": 7}, other: {"width": 7}
    }  # fmt: skip
    assert "12345678901234567890" in back[first].said
    for archived, each in back.items():
        assert (lease_retry.retried_as(session, archived), verbs(session, archived)) == (
            each.id,
            ["edited and retried"],
        )
    assert {row(session, each).state for each in (second, unlike, huge)} == {"dead"}
    assert session.value(
        "select count(*) from messages.operation_item where outcome = 'done' and sent_as is not null"
    ) == 2  # fmt: skip
    entry = AuditEntry.objects.get(verb="retry")
    assert entry.after["edit"] == {"field": "width", "way": "set", "value": "7", "json": True}  # type: ignore[index]


def test_masked_field_of_a_type_is_not_edited(queue: LeaseQueue, session: Connection, editor: User) -> None:
    hidden, seen = failed(queue, {"kind": "pay", "card": "4"}, {"kind": "render", "card": "4"})
    session.run("update messages.message_archive set message_type = message ->> 'kind'")
    MaskingRule.objects.create(name="card", kind="path", pattern="card", types=["pay"])
    operation = selection.freeze("retry", ArchiveFilter(kind="lease"), editor, "console", "misspelt")
    edits.propose(operation.pk, MessageEdit("field", "card", "set", "5"), editor)
    lifecycle.start(operation.pk, editor, "misspelt")
    runner.run(operation.pk)
    assert {each.retried_from: each.message["card"] for each in session.all("select * from messages.message")} == {
        seen: "5"
    }  # fmt: skip
    assert row(session, hidden).state == "dead"


def test_a_second_ending_among_many_is_left(queue: LeaseQueue, session: Connection, editor: User) -> None:
    (first,) = failed(queue, {"a": 1})
    session.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " select created_at, message, 'failed', 'worker' from messages.message_archive"
    )
    operation = selection.freeze("retry", ArchiveFilter(kind="lease"), editor, "console", "misspelt")
    edits.propose(operation.pk, MessageEdit("field", "a", "set", "2", is_json=True), editor)
    lifecycle.start(operation.pk, editor, "misspelt")
    runner.run(operation.pk)
    (back,) = session.all("select * from messages.message")
    assert (back.retried_from, back.message) == (first, {"a": 2})


def test_a_queue_that_drops_rows_takes_none(queue: LeaseQueue, session: Connection, ana: User) -> None:
    (archived,) = failed(queue, 1)
    session.run("""
        create function public.nothing() returns trigger language plpgsql as 'begin return null; end';
        create trigger nothing before insert on messages.message for each row execute function public.nothing()
    """)
    outcome = single.act("retry", archived, ana, "console")
    assert (outcome.result, row(session, archived).state) == ("failed", "dead")


def test_a_second_ending_is_not_retried(queue: LeaseQueue, session: Connection, ana: User) -> None:
    (archived,) = failed(queue, {"a": 1})
    session.run(
        "insert into messages.message_archive (created_at, message, result, handled_by)"
        " select created_at, message, 'failed', 'worker' from messages.message_archive"
    )
    second = session.value("select max(id) from messages.message_archive")
    outcome = single.act("retry", second, ana, "console")
    assert (outcome.result, outcome.why) == (
        "failed", f"An original client ended it a second time. Retry archived message {archived}."
    )  # fmt: skip


def test_tables_of_the_version_before_refuse_with_what_to_do(queue: LeaseQueue, session: Connection, ana: User) -> None:
    (archived,) = failed(queue, 1)
    set_back(session, 4)
    with pytest.raises(EngineTablesOlder, match=r"run manage\.py engine_schema\."):
        single.act("retry", archived, ana, "console")


def test_a_schema_that_is_not_watched_is_not_written_to(
    queue: LeaseQueue, session: Connection, ana: User, settings: Any
) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    (archived,) = failed(queue, 1)
    outcome = single.act("retry", archived, ana, "console")
    assert (outcome.result, "PGQUEUE_QUEUE_SCHEMAS" in (outcome.why or "")) == ("failed", True)


def test_in_stages_each_is_followed_by_the_message_that_it_became(
    queue: LeaseQueue, session: Connection, ana: User
) -> None:
    archived = failed(queue, *range(6))
    plan = Planned(try_first=0, then_some=0, rest_rate=100, hold_above=1_000, waits=False, stop_dead=0)
    operation, clock = planned(ana, plan, kind="lease"), Clock()
    look(operation, clock)
    assert classes(operation) == {"sent": 6}
    succeeds, dies, *_ = queue.claim(3)
    queue.finish(succeeds, "success")
    queue.finish(dies, "failed", "no encoder")
    assert plan_of(operation).operation.count == len(archived)
    look(operation, clock)
    assert look(operation, clock).ready_now == 3, "one is in hand"
    assert classes(operation) == {"succeeded": 1, "dead": 1, "sent": 4}, "of which failure it is nobody has told yet"
    failure_groups.catch_up()
    assert classes(operation) == {"succeeded": 1, "same": 1, "sent": 4}

"""Acts by hand on the lease queue: audited, checked for rights, and refused if the lock changed meanwhile."""

from collections.abc import Callable
from typing import Any

import environ
import psycopg
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive.held_row import would_run
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import leases
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.operations.targets import judge
from tests.archived_messages import person
from tests.console.sampled import elsewhere
from tests.lease import original
from tests.older_schema import set_back

Connect = Callable[..., Connection]


@pytest.fixture(autouse=True)
def archive(console_database: str, settings: Any) -> str:
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    return console_database


def seen(session: Connection, number: int) -> str:
    """The message's state, as a page read it."""
    found = postgresql().leases.seen_now(session, number)
    assert found is not None
    return found


def audited() -> list[tuple[str, str, Any]]:
    return list(AuditEntry.objects.order_by("id").values_list("verb", "who", "after"))


def test_typed_json_is_published_digit_by_digit(queue: LeaseQueue, ana: User) -> None:
    typed = '{"kind": "render", "big": 123456789012345678901234567890.10, "text": "\\u00fc"}'
    number = leases.publish(QUEUE, typed, ana, "console")
    (lease,) = queue.claim()
    assert (lease.id, "123456789012345678901234567890.10" in lease.text, lease.message["text"]) == (number, True, "ü")
    assert audited() == [("publish", "ana", {"id": number})]


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ('{"a": 1', "line 1, column 8"),
        ("", "line 1, column 1"),
        ("NaN", "NaN is no number of JSON"),
        ('"\\u0000"', "Unicode"),
        ("[" * 100_000, "JSON"),
        ('"' + "x" * 1_000_001 + '"', "1,000,000 bytes"),
    ],
)
def test_invalid_json_is_refused_with_its_position(ana: User, session: Connection, typed: str, why: str) -> None:
    with pytest.raises(OperationRefused, match=why):
        leases.publish(QUEUE, typed, ana, "console")
    assert session.value("select count(*) from messages.message") == 0
    assert audited() == []


def test_a_lock_is_released_and_another_worker_has_it_at_once(
    queue: LeaseQueue, session: Connection, ana: User
) -> None:
    queue.publish(1)
    (lease,) = queue.claim(lock_for=600)
    session.listen("new_message")
    leases.release(QUEUE, lease.id, seen(session, lease.id), ana, "console", "stuck")
    assert next(iter(session.notifications(timeout=10))).payload == str(lease.id)
    assert queue.finish(lease) is None, "who had it ends nothing any more"
    assert [each.id for each in queue.claim()] == [lease.id]
    assert audited() == [("release", "ana", {"id": lease.id})]


def test_a_renewal_is_the_same_lock(queue: LeaseQueue, session: Connection, ana: User) -> None:
    queue.publish(1)
    (lease,) = queue.claim()
    before = seen(session, lease.id)
    queue.renew(lease, 300)
    leases.release(QUEUE, lease.id, before, ana, "console")
    assert queue.claim()


def test_a_lock_that_was_taken_meanwhile_is_not_touched(queue: LeaseQueue, session: Connection, ana: User) -> None:
    queue.publish(1)
    (first,) = queue.claim()
    before = seen(session, first.id)
    queue.release(first)
    (second,) = queue.claim()
    for act in (
        lambda: leases.release(QUEUE, first.id, before, ana, "console"),
        lambda: leases.end(QUEUE, first.id, before, "failed", ana, "console", "stuck"),
        lambda: leases.end(QUEUE, first.id, "", "failed", ana, "console", "waits too long"),
    ):
        with pytest.raises(OperationRefused, match="locked anew meanwhile"):
            act()
    assert queue.finish(second)
    assert audited() == []


def test_an_original_clients_lock_is_known_by_its_end(
    queue: LeaseQueue, session: Connection, ana: User, archive: str
) -> None:
    number = queue.publish(1)
    with psycopg.connect(archive, autocommit=True) as worker:
        worker.execute("set timezone = 'UTC'")
        assert original.retrieve(worker, number, 600)
        before = seen(session, number)
        leases.release(QUEUE, number, before, ana, "console")
        assert original.retrieve(worker, number, 700)
    with pytest.raises(OperationRefused, match="locked anew"):
        leases.release(QUEUE, number, before, ana, "console")


def test_a_row_in_somebodys_hands_is_left_to_him_at_once(queue: LeaseQueue, session: Connection, ana: User) -> None:
    queue.publish(1)
    (lease,) = queue.claim()
    before = seen(session, lease.id)
    with session.transaction():
        session.run("select from messages.message for update")
        with pytest.raises(OperationRefused, match="at this moment"):
            leases.release(QUEUE, lease.id, before, ana, "console")
        with pytest.raises(OperationRefused, match="at this moment"):
            leases.end(QUEUE, lease.id, before, "failed", ana, "console", "stuck")
    leases.release(QUEUE, lease.id, before, ana, "console")
    with session.transaction():
        session.run("select from messages.message for update")
        with pytest.raises(OperationRefused, match="at this moment"):
            leases.end(QUEUE, lease.id, "", "failed", ana, "console", "stuck")
    with pytest.raises(OperationRefused, match="is not locked"):
        leases.release(QUEUE, lease.id, "", ana, "console")


@pytest.mark.parametrize("result", ["failed", "rejected"])
@pytest.mark.parametrize("locked", [True, False])
def test_a_message_is_ended_with_who_and_why(
    queue: LeaseQueue, session: Connection, ana: User, result: Any, locked: bool
) -> None:
    number = queue.publish({"kind": "render", "asset": "kettle"})
    if locked:
        queue.claim()
    archived = leases.end(QUEUE, number, seen(session, number), result, ana, "console", "poisoned")
    row = session.one("select * from messages.message_archive")
    assert row is not None
    assert (row.id, row.message_id, row.result, row.handled_by) == (archived, str(number), result, "ana")
    assert (row.message["asset"], row.message_type) == ("kettle", "render")
    assert (row.details, row.second_ending_of) == ("Ended by ana: poisoned", None)
    assert session.one("select verb, who from messages.archive_event") == ("ended", "ana")
    assert session.value("select count(*) from messages.message") == 0
    assert audited() == [("end", "ana", {"id": number, "result": result, "archive_id": archived})]
    with pytest.raises(OperationRefused, match="it ended meanwhile"):
        leases.end(QUEUE, number, "", "failed", ana, "console", "again")


def test_an_end_needs_a_reason_and_each_act_its_right(queue: LeaseQueue, session: Connection, ana: User) -> None:
    number, viewer = queue.publish(1), person("viewer")
    with pytest.raises(OperationRefused, match="a reason"):
        leases.end(QUEUE, number, "", "failed", ana, "console", "")
    for act in (
        lambda: leases.publish(QUEUE, "1", viewer, "console"),
        lambda: leases.release(QUEUE, number, "", viewer, "console"),
        lambda: leases.end(QUEUE, number, "", "failed", viewer, "console", "why"),
    ):
        with pytest.raises(OperationNotAllowed, match="needs the right"):
            act()
    assert session.value("select count(*) from messages.message") == 1


@pytest.mark.parametrize("number", [0, -1, 2**31, 10**30])
def test_a_number_that_no_message_has_is_refused(ana: User, number: int) -> None:
    with pytest.raises(OperationRefused, match="no longer in the queue"):
        leases.release(QUEUE, number, "x", ana, "console")
    with pytest.raises(OperationRefused, match="no longer in the queue"):
        leases.end(QUEUE, number, "", "failed", ana, "console", "why")


def test_an_unwatched_schema_and_older_tables_are_not_acted_on(session: Connection, ana: User, settings: Any) -> None:
    set_back(session, 3)
    with pytest.raises(OperationRefused, match="engine_schema"):
        leases.publish(QUEUE, "1", ana, "console")
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public"]}
    with pytest.raises(OperationRefused, match="PGQUEUE_QUEUE_SCHEMAS"):
        leases.publish(QUEUE, "1", ana, "console")


def test_a_copy_of_the_table_takes_no_act_meant_for_its_own_rows(
    queue: LeaseQueue, session: Connection, ana: User
) -> None:
    number = queue.publish({"kind": "render"})
    session.run("create table public.message_copy (like messages.message including all)")
    copy = Address("public", "message_copy")
    acts: list[Callable[[], Any]] = [
        lambda: leases.publish(copy, "1", ana, "console"),
        lambda: leases.release(copy, number, "", ana, "console"),
        lambda: leases.end(copy, number, "", "failed", ana, "console", "junk"),
    ]
    for act in acts:
        with pytest.raises(OperationRefused, match="only has the shape of the lease queue, which is"):
            act()
    assert [lease.id for lease in queue.claim(10)] == [number]
    assert audited() == []


def test_a_publish_whose_outcome_is_unknown_is_audited(queue: LeaseQueue, session: Connection, ana: User) -> None:
    session.run(
        "create function public.end_me() returns trigger language plpgsql as $$ begin"
        " perform pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid()); return new; end $$"
    )
    session.run("create trigger end_me before insert on messages.message for each row execute function public.end_me()")
    with pytest.raises(OutcomeUnknown, match="It may have been published, or not"):
        leases.publish(QUEUE, "{}", ana, "console")
    assert audited() == [("publish", "ana", {"outcome": "not known"})]


SPIES = """
do $$ begin create role neighbour; exception when duplicate_object then null; end $$;
create function public.spy() returns trigger language plpgsql as $$ begin return coalesce(new, old); end $$;
alter function public.spy() owner to neighbour;
create trigger spies before {} for each row execute function public.spy()
"""


@pytest.mark.parametrize(
    ("spied", "refused"),
    [
        ("insert on messages.message", {"publish"}),
        ("update on messages.message", {"release"}),
        ("delete on messages.message", {"end"}),
        ("insert on messages.message_archive", {"end"}),
        ("update on messages.message_archive", {"end"}),  # written when a retried message ends
        ("insert on messages.archive_event", {"end"}),
    ],
)
def test_no_act_runs_code_of_others(
    queue: LeaseQueue, session: Connection, ana: User, spied: str, refused: set[str]
) -> None:
    """Any role with TRIGGER on these tables can attach it."""
    queue.publish_many([1, 2])
    locked, other = queue.claim(2)
    session.run(SPIES.format(spied))
    acts = {
        "publish": lambda: leases.publish(QUEUE, "1", ana, "console"),
        "release": lambda: leases.release(QUEUE, locked.id, seen(session, locked.id), ana, "console"),
        "end": lambda: leases.end(QUEUE, other.id, seen(session, other.id), "failed", ana, "console", "stuck"),
    }
    for name, act in acts.items():
        if name in refused:
            with pytest.raises(OperationRefused, match=r"Nothing was .*trigger spies of role neighbour"):
                act()
        else:
            act()
    assert {verb for verb, *_ in audited()} == acts.keys() - refused


def test_triggers_of_the_engines_owner_are_no_foreign_code(
    queue: LeaseQueue, session: Connection, archive: str, ana: User
) -> None:
    """A role with only the rights of docs/reference/database-access.md acts on another role's tables."""
    queue.publish_many([1, 2])
    locked, other = queue.claim(2)
    session.run("""
        do $$ begin create role narrow login; exception when duplicate_object then null; end $$;
        alter role narrow password 'narrow';
        grant usage on schema messages to narrow; grant select on all tables in schema messages to narrow;
        grant insert, update, delete on all tables in schema messages to narrow;
        grant usage on all sequences in schema messages to narrow
    """)
    with elsewhere("queues", **{**environ.Env.db_url_config(archive), "USER": "narrow", "PASSWORD": "narrow"}):
        leases.publish(QUEUE, "1", ana, "console")
        leases.release(QUEUE, locked.id, seen(session, locked.id), ana, "console")
        leases.end(QUEUE, other.id, seen(session, other.id), "failed", ana, "console", "stuck")
        with queue_database().read_session() as reading:
            assert (judge(reading, [QUEUE])[QUEUE].runs, would_run(reading, QUEUE)) == ((), "")
    session.run("drop owned by narrow; drop role narrow")

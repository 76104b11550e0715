"""Rules of the lease queue retry dead messages a number of times, each death once, whichever process is killed (L8)."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import lease_rules as archived_rules
from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import lease_rules as rules
from pgqueue_admin.services import leases
from pgqueue_admin.services.lease_rules import RuleDraft
from pgqueue_admin.services.operations import single
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused
from tests.archived_messages import person
from tests.lease import original
from tests.older_schema import set_back

Connect = Callable[..., Connection]
FAILED = RuleDraft("render", ("failed", "lock_expired"), 2, 60)


@pytest.fixture(autouse=True)
def archive(console_database: str, settings: Any) -> str:
    """Replaces this folder's fixture: no transport messages."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}
    return console_database


@pytest.fixture
def chief(archive: str) -> User:
    return person("chief", "change_settings", "retry_message", "discard_message")


def keep(chief: User, draft: RuleDraft = FAILED) -> int:
    return rules.create(draft, chief, "console", "the encoder restarts at night")


def dies(queue: LeaseQueue, result: Any = "failed", message: Any = None) -> int:
    """End the next waiting message, or a new one, as dead; return its archive id."""
    if message is not None:
        queue.publish(message)
    (lease,) = queue.claim(1)
    ended = queue.finish(lease, result, "no encoder")
    assert ended
    assert ended.archive_id
    return ended.archive_id


def pass_time(session: Connection, seconds: float) -> None:
    """Move deaths and their due times into the past."""
    asked = {"passed": timedelta(seconds=seconds)}
    session.run("update messages.lease_rule_dead set available_at = available_at - %(passed)s", asked)
    session.run("update messages.message_archive set died_at = died_at - %(passed)s where state = 'dead'", asked)


def waiting(session: Connection) -> list[Any]:
    return session.all("select id, message, retried_from from messages.message order by id")


def kept(session: Connection) -> int:
    return int(session.value("select count(*) from messages.lease_rule_dead"))


def state(session: Connection, archive_id: int) -> Any:
    asked = "select state, resolved_by, retried_as from messages.message_archive where id = %(id)s"
    return session.one(asked, {"id": archive_id})


def test_message_is_retried_after_each_wait_and_then_stays_dead(
    queue: LeaseQueue, session: Connection, chief: User
) -> None:
    """Each wait is twice the previous one; each archive row refers to the message it became."""
    number = keep(chief)
    died = dies(queue, message={"kind": "render"})
    for wait in (60, 120):
        assert rules.apply(1) == 0, "not yet"
        pass_time(session, wait - 10)
        assert rules.apply(1) == 0, "not yet"
        pass_time(session, 11)
        assert rules.apply(1) == 1
        (row,) = waiting(session)
        assert (row.message, row.retried_from) == ({"kind": "render"}, died)
        assert tuple(state(session, died)) == ("retried", f"lease rule {number}", row.id)
        former, died = died, dies(queue)
        assert state(session, former).state == "dead_again"
    pass_time(session, 86_400)
    assert rules.apply(1) == 0
    assert (waiting(session), kept(session)) == ([], 0)
    assert state(session, died).state == "dead"
    assert [each.number for each in rules.done(session).values()] == [2]


def test_each_round_has_an_entry_in_the_audit(queue: LeaseQueue, session: Connection, chief: User) -> None:
    number = keep(chief)
    died = [dies(queue, message={"kind": "render"}) for _ in range(3)]
    pass_time(session, 61)
    assert rules.apply(1) == 3
    entry = AuditEntry.objects.get(verb="retry")
    assert (entry.who, entry.count, entry.origin) == (rules.WHO, 3, "rule")
    assert entry.after == {"rules": {str(number): died}}
    assert rules.apply(1) == 0
    assert AuditEntry.objects.filter(verb="retry").count() == 1, "nothing done, nothing written"
    made = AuditEntry.objects.get(verb="create")
    assert (made.who, made.noun, made.subject, made.reason) == (
        "chief", rules.NOUN, "render", "the encoder restarts at night",
    )  # fmt: skip
    assert (made.after or {})["rule"] == number


@pytest.mark.parametrize(
    ("draft", "result", "message", "goes"),
    [
        (FAILED, "lock_expired", {"kind": "render"}, True), (FAILED, "rejected", {"kind": "render"}, False),
        (FAILED, "failed", {"kind": "mail"}, False), (FAILED, "failed", ["render", 1], True),
        (FAILED, "failed", [], False), (FAILED, "failed", {"kind": 5}, False),
        (RuleDraft("", ("rejected",), 1, 60), "rejected", 7, True),
        (RuleDraft("ren*", ("failed",), 1, 60), "failed", {"kind": "render"}, True),
    ],
)  # fmt: skip
def test_which_messages_a_rule_fits(
    queue: LeaseQueue, session: Connection, chief: User, draft: RuleDraft, result: Any, message: Any, goes: bool
) -> None:
    keep(chief, draft)
    dies(queue, result, message)
    pass_time(session, 61)
    assert rules.apply(1) == int(goes)
    assert kept(session) == 0


def test_an_expired_lock_is_a_death_too(queue: LeaseQueue, session: Connection, chief: User) -> None:
    keep(chief)
    queue.publish({"kind": "render"})
    queue.claim(1, lock_for=0.001)
    while not queue.expire().archived:
        pass
    pass_time(session, 61)
    assert rules.apply(1) == 1


def test_the_first_that_fits_counts(queue: LeaseQueue, session: Connection, chief: User) -> None:
    first = keep(chief, RuleDraft("ren*", ("failed",), 1, 10))
    keep(chief)
    died = dies(queue, message={"kind": "render"})
    pass_time(session, 11)
    assert rules.apply(1) == 1
    assert state(session, died).resolved_by == f"lease rule {first}"


def test_deaths_before_the_rule_are_left_alone(queue: LeaseQueue, session: Connection, chief: User) -> None:
    dies(queue, message={"kind": "render"})
    keep(chief)
    pass_time(session, 86_400)
    assert rules.apply(1) == 0


def test_message_ended_by_a_person_is_left_alone(queue: LeaseQueue, session: Connection, chief: User) -> None:
    keep(chief)
    number = queue.publish({"kind": "render"})
    leases.end(QUEUE, number, "", "failed", chief, "console", "it is poison")
    pass_time(session, 61)
    assert (rules.apply(1), kept(session)) == (0, 0)


def test_message_retried_by_hand_is_left_alone_until_it_dies_again(
    queue: LeaseQueue, session: Connection, chief: User
) -> None:
    """A retry by hand starts a new count."""
    keep(chief, RuleDraft("render", ("failed",), 1, 60))
    died = dies(queue, message={"kind": "render"})
    single.act("retry", died, chief, "console")
    pass_time(session, 61)
    assert (rules.apply(1), kept(session)) == (0, 0)
    dies(queue)
    pass_time(session, 61)
    assert rules.apply(1) == 1


def test_killed_rule_run_has_done_nothing(
    queue: LeaseQueue, session: Connection, chief: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends its session after the message is put back and before the commit."""
    keep(chief)
    died = dies(queue, message={"kind": "render"})
    pass_time(session, 61)

    def killed(connection: Connection, *_: Any) -> None:
        session.run("select pg_terminate_backend(%(pid)s)", {"pid": connection.value("select pg_backend_pid()")})
        connection.value("select 1")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(archived_rules, "_settle", killed)
        with pytest.raises(Exception, match=r"terminat|closed|lost|down"):
            rules.apply(1)
    assert (waiting(session), state(session, died).state) == ([], "dead")
    assert not AuditEntry.objects.filter(verb="retry").exists()
    assert rules.apply(1) == 1
    assert len(waiting(session)) == 1


def test_two_at_once_retry_each_once(queue: LeaseQueue, session: Connection, chief: User, archive: str) -> None:
    keep(chief)
    died = [dies(queue, message={"kind": "render", "n": n}) for n in range(250)]
    pass_time(session, 61)
    done: list[int] = []
    both = [threading.Thread(target=lambda: done.append(rules.apply(30))) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    while more := rules.apply(1):
        done.append(more)
    assert sum(done) == 250
    assert sorted(row.retried_from for row in waiting(session)) == sorted(died)


def test_a_queue_that_refuses_is_asked_again_for_a_day(queue: LeaseQueue, session: Connection, chief: User) -> None:
    keep(chief)
    died = dies(queue, message={"kind": "render"})
    session.run("alter table messages.message add constraint none check (retried_from is null)")
    pass_time(session, 61)
    assert (rules.apply(1), kept(session)) == (0, 1)
    session.run("alter table messages.message drop constraint none")
    pass_time(session, 61)
    assert rules.apply(1) == 1
    session.run("alter table messages.message add constraint none check (false) not valid")
    session.run("update messages.message_archive set resolution = null where id = %(id)s", {"id": died})
    session.run("insert into messages.lease_rule_dead (archive_id) values (%(id)s)", {"id": died})
    pass_time(session, 90_000)
    assert (rules.apply(1), kept(session)) == (0, 0)


def test_message_refused_by_the_queue_holds_up_no_other(
    queue: LeaseQueue, session: Connection, chief: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All due messages are retried by one statement, which the queue may refuse because of one row."""
    monkeypatch.setattr(archived_rules, "_ALONE", 60.0)  # however busy the machine is
    keep(chief)
    died = [dies(queue, message={"kind": "render", "n": n}) for n in range(5)]
    session.run("alter table messages.message add constraint odd check (message ->> 'n' <> '2') not valid")
    pass_time(session, 61)
    assert rules.apply(1) == 4
    assert [state(session, each).state for each in died] == ["retried", "retried", "dead", "retried", "retried"]
    assert kept(session) == 1


def test_a_look_that_finds_nothing_leaves_no_gap_in_the_audit(
    queue: LeaseQueue, session: Connection, chief: User
) -> None:
    keep(chief)
    dies(queue, message={"kind": "render"})
    before = AuditEntry.objects.latest("id").pk
    for _ in range(3):
        rules.apply(1)  # its first death is reported when it is due
    session.run("delete from messages.lease_rule_dead")
    rules.apply(1)
    keep(chief, RuleDraft("mail", ("failed",), 1, 60))
    assert AuditEntry.objects.latest("id").pk - before <= 2


def test_no_strangers_row_stops_it(queue: LeaseQueue, session: Connection, chief: User) -> None:
    """Any role that may insert into the archive chooses the message id and type of its rows."""
    keep(chief)
    for said in ("x", "9" * 40, "-1", ""):
        session.run(
            "insert into messages.message_archive (created_at, message, result, handled_by, message_id, message_type)"
            " values (now(), '{{}}', 'failed', 'x', %(said)s, %(said)s)".replace("{{}}", "{}"),
            {"said": said},
        )
    dies(queue, message={"kind": "render"})
    pass_time(session, 61)
    assert (rules.apply(1), kept(session)) == (1, 0)


def test_removed_rule_retries_no_more(queue: LeaseQueue, session: Connection, chief: User) -> None:
    number = keep(chief)
    dies(queue, message={"kind": "render"})
    assert rules.remove(number, chief, "console", "repaired") == FAILED
    pass_time(session, 61)
    assert (rules.apply(1), kept(session)) == (0, 0)
    entry = AuditEntry.objects.get(verb="remove")
    assert (entry.reason, (entry.before or {})["times"]) == ("repaired", 2)
    with pytest.raises(AlreadyDecided):
        rules.remove(number, chief, "console")
    dies(queue, message={"kind": "render"})
    assert kept(session) == 0, "without a rule nothing is kept"


@pytest.mark.parametrize(
    "draft",
    [
        RuleDraft("a\0", ("failed",), 1, 60), RuleDraft("a" * 401, ("failed",), 1, 60), RuleDraft("", (), 1, 60),
        RuleDraft("", ("success",), 1, 60), RuleDraft("", ("failed",), 0, 60), RuleDraft("", ("failed",), 21, 60),
        RuleDraft("", ("failed",), 1, 0), RuleDraft("", ("failed",), 1, 86_401),
    ],
)  # fmt: skip
def test_invalid_rule_is_refused(session: Connection, chief: User, draft: RuleDraft) -> None:
    with pytest.raises(OperationRefused):
        keep(chief, draft)
    assert not AuditEntry.objects.exists()
    assert rules.all_rules(session) == []


def test_second_rule_for_the_same_messages_is_refused(chief: User) -> None:
    keep(chief)
    with pytest.raises(AlreadyDecided, match="Remove it first"):
        keep(chief)
    assert AuditEntry.objects.count() == 1


def test_only_who_may_change_settings(ana: User) -> None:
    with pytest.raises(OperationNotAllowed):
        keep(ana)


def test_tables_of_the_version_before(session: Connection, chief: User) -> None:
    set_back(session, 9)
    with pytest.raises(OperationRefused, match=r"manage\.py engine_schema"):
        keep(chief)
    assert rules.all_rules(session) == []
    assert rules.apply(1) == 0
    assert schema.install(session).did == "updated"
    keep(chief)


def test_retries_of_a_rule_are_forgotten_after_a_month(queue: LeaseQueue, session: Connection, chief: User) -> None:
    keep(chief)
    dies(queue, message={"kind": "render"})
    pass_time(session, 61)
    rules.apply(1)
    session.run("update messages.lease_rule_retry set at = at - interval '32 days'")
    count = "select count(*) from messages.lease_rule_retry"
    session.run("insert into messages.lease_rule_dead (archive_id) values (0)")
    rules.apply(1)
    assert session.value(count) == 1, "as long as the message waits, its number is needed"
    dies(queue)
    rules.apply(1)
    assert session.value(count) == 0


def test_message_ended_by_the_originals_cron_job_is_left_alone(
    queue: LeaseQueue, session: Connection, chief: User, archive: str
) -> None:
    """It archives before it deletes, so its row has no message id, and its retries could not be counted."""
    keep(chief)
    queue.publish({"kind": "render"})
    queue.claim(1, lock_for=0.001)
    with psycopg.connect(archive, autocommit=True) as cron:
        while waiting(session):
            cron.execute(original.CLEANUP_COPY)
            cron.execute(original.CLEANUP_DELETE)
    pass_time(session, 86_400)
    assert rules.apply(1) == 0
    assert (waiting(session), kept(session)) == ([], 0)


def test_a_second_ending_beside_a_twin_that_waits_is_left_alone(
    queue: LeaseQueue, session: Connection, chief: User, archive: str
) -> None:
    """An original worker ends it after its lock expired: beside an equal message that is not recognised."""
    keep(chief)
    queue.publish_many([{"kind": "render"}] * 2)
    (mine, _) = (row.id for row in waiting(session))
    with psycopg.connect(archive, autocommit=True, options="-c timezone=UTC") as worker:
        row = original.retrieve(worker, mine, 0.001)
        while not queue.expire().archived:
            pass
        original.finish(worker, row, "failed")
    pass_time(session, 61)
    assert rules.apply(1) == 1
    assert len(waiting(session)) == 2, "its twin, and itself once more"


def test_locked_archive_row_holds_up_no_other(
    queue: LeaseQueue, session: Connection, chief: User, archive: str
) -> None:
    """A session idle in a transaction may hold it for hours; the message is retried when it ends."""
    keep(chief)
    held, free = (dies(queue, message={"kind": "render", "n": n}) for n in range(2))
    pass_time(session, 61)
    with psycopg.connect(archive) as other:
        other.execute("select from messages.message_archive where id = %s for update", [held])
        began = time.monotonic()
        assert rules.apply(1) == 1
        assert time.monotonic() - began < 4, "locks run out meanwhile"
        assert (state(session, held).state, state(session, free).state) == ("dead", "retried")
    pass_time(session, 61)
    assert rules.apply(1) == 1

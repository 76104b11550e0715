"""A staged retry: a trial, a check, a slow stage, the rest; it stops, holds and waits by itself, and is followed up."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.contrib.auth.models import User
from django.db import connection as console_database
from django.test.utils import CaptureQueriesContext

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, Operation, Queue, RetryPlan
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import (
    lifecycle,
    plans,
    queries,
    runner,
    selection,
    single,
    staged_controls,
    staged_retry,
)
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.plans import Planned
from tests.archived_messages import BILLING, events_of, number_in
from tests.older_schema import set_back
from tests.staged_retries import CALM, Clock, classes, die, go_by, handle, look, plan_of, planned, sent, take

State = Operation.State
FLAT = Planned(try_first=0, then_some=0, rest_rate=20.0, stop_dead=0, **CALM)


def test_the_trial_goes_first_and_nothing_more_before_it_was_watched(ana: User) -> None:
    operation, clock = planned(ana), Clock()
    before = number_in(BILLING)
    for _ in range(5):
        look(operation, clock)
    assert number_in(BILLING) == before + 5
    assert plan_of(operation).says.startswith("Watches the first 5 for 1")
    handle(operation, sent(operation))
    look(operation, clock)
    assert len(sent(operation)) == 5, "its time is not over"
    go_by(operation, 60)
    look(operation, clock)
    assert len(sent(operation)) == 10, "then five a second"
    assert plan_of(operation).says == ""


def test_retry_goes_on_only_once_the_trial_was_received(ana: User) -> None:
    operation, clock = planned(ana), Clock()
    look(operation, clock)
    go_by(operation, 61)
    look(operation, clock)
    assert "5 of the first 5 messages wait in the queue" in plan_of(operation).says
    assert len(sent(operation)) == 5
    go_by(operation, 1800)
    look(operation, clock)
    assert (plan_of(operation).operation.state, len(sent(operation))) == (State.STOPPED, 5)
    assert "so nobody receives" in plan_of(operation).says


def test_unreadable_queue_does_not_count_as_one_without_a_receiver(ana: User) -> None:
    operation, clock = planned(ana), Clock()
    look(operation, clock)
    with queue_database().write_session() as connection:
        connection.run(f"alter table {BILLING} rename column body to no_body")
    go_by(operation, 61)
    said = "whether somebody has taken the first 5 messages is not known"
    assert look(operation, clock).says.startswith(f"Watches: {said}. {BILLING} cannot be looked into")
    go_by(operation, 1800)
    plan = look(operation, clock)
    assert plan.operation.state == State.STOPPED
    assert plan.says.startswith(f"Stopped by itself: {said} after 31")
    assert "nobody receives" not in plan.says


def test_retry_keeps_to_its_rate(ana: User) -> None:
    """By the test's clock, with a step every tenth of a second."""
    operation, clock = planned(ana, FLAT), Clock()
    counts = []
    for _ in range(60):
        staged_retry.step(operation.pk, clock.after(0.1))
        counts.append(len(sent(operation)))
    assert max(after - before for before, after in pairwise(counts)) <= 20, "a chunk is a second's worth at most"
    for seconds in (1, 2, 3, 4):
        assert counts[seconds * 10 - 1] <= 20 * (seconds + 1)
    assert counts[-1] == 88
    assert counts[40] < 88 or counts[44] == 88


def test_late_step_makes_up_for_one_second_only(ana: User) -> None:
    operation, clock = planned(ana, FLAT), Clock()
    staged_retry.step(operation.pk, clock.after(0))
    clock.after(3600)
    for _ in range(5):
        staged_retry.step(operation.pk, clock.now)
    assert len(sent(operation)) == 60, "the hour that nobody ran is not made up for"


def test_two_that_step_at_once_send_what_one_would(ana: User) -> None:
    operation, clock = planned(ana, FLAT), Clock()
    for _ in range(3):
        clock.after(1)
        staged_retry.step(operation.pk, clock.now)
        staged_retry.step(operation.pk, clock.now)
        staged_retry.step(operation.pk, clock.now)
    assert len(sent(operation)) <= 20 * 4


def test_nothing_is_sent_while_somebody_looks(ana: User) -> None:
    """A look interrupted by a kill is repeated within a second."""
    operation, clock = planned(ana, FLAT), Clock()
    RetryPlan.objects.filter(pk=operation.pk).update(looking=True, look_at=clock.after(1))
    staged_retry.step(operation.pk, clock.now - timedelta(seconds=0.5))
    assert sent(operation) == []
    staged_retry.step(operation.pk, clock.now)
    assert len(sent(operation)) == 20


def test_a_slow_rate_sends_one_at_a_time(ana: User) -> None:
    operation, clock = planned(ana, Planned(try_first=0, then_some=0, rest_rate=0.5, **CALM)), Clock()
    for _ in range(11):
        staged_retry.step(operation.pk, clock.after(1))
    assert len(sent(operation)) == 6


def test_one_death_in_the_trial_stops_the_retry(ana: User) -> None:
    operation, clock = planned(ana), Clock()
    look(operation, clock)
    die(operation, sent(operation)[2:3])
    plan = look(operation, clock)
    stopped = "Stopped by itself: 1 of the first 5 died again."
    assert (plan.operation.state, plan.says) == (State.STOPPED, stopped)
    entry = AuditEntry.objects.get(verb="stop")
    assert (entry.who, entry.subject, entry.reason) == ("the console", str(operation.pk), stopped)
    go_by(operation, 61)
    look(operation, clock)
    assert len(sent(operation)) == 5
    staged_controls.go_on(operation.pk, ana, "that one is known")
    look(operation, clock)
    plan = look(operation, clock)
    assert plan.operation.state == State.RUNNING
    assert len(sent(operation)) > 5


def test_retry_stops_at_its_limit_of_deaths_in_consecutive_sends(ana: User) -> None:
    operation, clock = (
        planned(ana, Planned(try_first=0, then_some=0, rest_rate=30, stop_dead=3, stop_of=10, **CALM)),
        Clock(),
    )
    look(operation, clock)
    ids = sent(operation)
    die(operation, [ids[0], ids[9], ids[10], ids[20]])
    plan = look(operation, clock)
    assert (plan.operation.state, plan.dead_now) == (State.RUNNING, 2), "three of eleven are not three of ten"
    die(operation, [ids[1]])
    plan = look(operation, clock)
    assert plan.operation.state == State.STOPPED
    assert plan.says == ("Stopped by itself: 3 of 10 sent one after another died again; the plan stops at 3 of any 10.")


def test_retry_stops_at_its_limit_of_deaths_of_one_queue(ana: User) -> None:
    """Every third goes to Sales, where each fourth dies: among those of Billing they are too few."""
    plan_of_ten = Planned(try_first=0, then_some=0, rest_rate=30, stop_dead=3, stop_of=10, **CALM)
    operation, clock = planned(ana, plan_of_ten), Clock()
    look(operation, clock)
    ids = sent(operation)
    die(operation, [ids[0], ids[12], ids[24]])
    assert look(operation, clock).operation.state == State.RUNNING
    with queue_database().write_session() as connection:
        to_sales = "update messages.message_archive set queue = 'Sales' where id = any (%(ids)s)"
        connection.run(to_sales, {"ids": ids[::3]})
    plan = look(operation, clock)
    assert plan.operation.state == State.STOPPED
    assert plan.says.startswith("Stopped by itself: 3 of 10 sent to one queue one after another died again;")
    stopped_at = len(sent(operation))
    look(operation, clock)
    assert len(sent(operation)) == stopped_at


def test_retry_holds_above_its_ceiling_until_below_three_quarters(ana: User) -> None:
    plan = Planned(try_first=0, then_some=0, rest_rate=10, stop_dead=0, hold_above=40, waits=False)
    operation, clock = planned(ana, plan), Clock()
    with queue_database().write_session() as connection:
        connection.run(f"delete from {BILLING}")
    while not look(operation, clock).held:
        assert len(sent(operation)) < 88
    assert len(sent(operation)) == 50
    assert plan_of(operation).says == "Holds: 50 ready in Billing, the plan holds above 40 and goes on below 30."
    take(operation, sent(operation)[:20])
    assert look(operation, clock).held, "30 are not below 30"
    take(operation, sent(operation)[20:21])
    assert not look(operation, clock).held
    assert len(sent(operation)) == 60


def test_retry_waits_for_a_receiver_and_lapses_after_hours(ana: User) -> None:
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", desired_processes=0)
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input", "endpoint": "Billing"})
    operation, clock = planned(ana, Planned(hold_above=None)), Clock()
    plan = look(operation, clock)
    assert (plan.operation.state, sent(operation)) == (State.WAITING, [])
    assert plan.says.startswith("Waits for a receiver. Billing: nobody receives. Nothing is sent; in 3")
    staged_retry.step(operation.pk, clock.after(4 * 3600))
    assert (plan_of(operation).operation.state, sent(operation)) == (State.LAPSED, [])
    assert "so nothing was sent" in plan_of(operation).says
    again = planned(ana, Planned(hold_above=None))
    look(again, Clock())
    Endpoint.objects.all().delete()
    Queue.objects.update(endpoint="")
    look(again, Clock())
    assert plan_of(again).operation.state == State.RUNNING


def test_outcome_of_each_message_is_known_and_never_guessed(ana: User) -> None:
    plan = Planned(try_first=0, then_some=0, rest_rate=100, stop_dead=0, **CALM)
    operation, clock = planned(ana, plan), Clock()
    look(operation, clock)
    assert classes(operation) == {"sent": 88}
    ids = sent(operation)
    handle(operation, ids[:3])
    die(operation, ids[3:5])
    die(operation, ids[5:6], exception_type="Other.Exception", stack_trace=None)
    take(operation, ids[6:10])
    look(operation, clock)
    assert classes(operation) == {"succeeded": 3, "same": 2, "other": 1, "unknown": 4, "sent": 78}, (
        "no endpoint of ours is there: who took four of them never says what came of it"
    )
    with queue_database().write_session() as connection:
        ours = "update messages.message_archive set retry_token = gen_random_uuid() where id = any (%(ids)s)"
        connection.run(ours, {"ids": ids[6:8]})
    assert classes(operation) == {"succeeded": 3, "same": 2, "other": 1, "picked": 2, "unknown": 2, "sent": 78}
    assert classes(operation, given_up=True)["unknown"] == 4
    assert plan_of(operation).operation.state == State.FOLLOWING


def test_retry_ends_once_each_outcome_is_known(ana: User) -> None:
    operation, clock = planned(ana, Planned(try_first=0, then_some=0, rest_rate=100, stop_dead=0, **CALM)), Clock()
    look(operation, clock)
    handle(operation, sent(operation)[:87])
    look(operation, clock)
    assert look(operation, clock).operation.state == State.FOLLOWING, "one waits"
    die(operation, sent(operation)[87:])
    plan = look(operation, clock)
    assert (plan.operation.state, plan.operation.done, plan.says) == (State.DONE, 88, "")
    assert events_of(operation.pk) == 88 * 2


def test_retry_ends_once_the_wait_for_outcomes_is_over(ana: User) -> None:
    operation, clock = planned(ana, Planned(try_first=0, then_some=0, rest_rate=100, **CALM)), Clock()
    look(operation, clock)
    take(operation, sent(operation))
    look(operation, clock)
    go_by(operation, 1700)
    assert look(operation, clock).operation.state == State.FOLLOWING
    go_by(operation, 101)
    plan = look(operation, clock)
    assert (plan.operation.state, plan.says) == (State.DONE, "Given up 30\u00a0min after the last was sent.")
    assert classes(operation, given_up=True) == {"unknown": 88}


def test_a_pause_takes_effect_with_the_next_chunk_and_one_is_first(ana: User) -> None:
    operation, clock = planned(ana, FLAT), Clock()
    look(operation, clock)
    number = len(sent(operation))
    staged_controls.pause(operation.pk, "tomas")
    look(operation, clock)
    assert len(sent(operation)) == number
    with pytest.raises(AlreadyDecided, match="Nothing was paused: tomas paused operation"):
        staged_controls.pause(operation.pk, ana)
    staged_controls.go_on(operation.pk, ana)
    with pytest.raises(AlreadyDecided, match=r"Nothing was resumed: operation .* runs"):
        staged_controls.go_on(operation.pk, "tomas")
    look(operation, clock)
    assert len(sent(operation)) > number
    acts = AuditEntry.objects.filter(noun="operation").order_by("pk").values_list("who", "verb")
    assert list(acts) == [("tomas", "pause"), ("ana", "resume")]


def test_paused_retry_is_looked_at_rarely_and_again_on_resume(ana: User) -> None:
    operation, clock = planned(ana, FLAT), Clock()
    look(operation, clock)
    staged_controls.pause(operation.pk, ana)
    staged_retry.step(operation.pk, clock.after(600))
    next_look = plan_of(operation).look_at
    assert next_look
    assert next_look >= clock.now + timedelta(seconds=staged_retry.LOOK_RARELY)
    staged_controls.go_on(operation.pk, ana)
    assert plan_of(operation).look_at is None


def test_changed_rate_applies_from_the_next_chunk(ana: User) -> None:
    operation, clock = planned(ana, Planned(try_first=0, then_some=0, rest_rate=0.01, **CALM)), Clock()
    look(operation, clock)
    staged_controls.change_rate(operation.pk, ana, 40, before=0.01)
    clock.now = Clock().now
    staged_retry.step(operation.pk, clock.after(1))
    assert len(sent(operation)) == 41
    with pytest.raises(AlreadyDecided, match=r"it is 40/s by now, you saw 0\.01/s"):
        staged_controls.change_rate(operation.pk, "tomas", 5, before=0.01)
    with pytest.raises(OperationRefused, match=r"The rate stays as it is\. Messages a second"):
        staged_controls.change_rate(operation.pk, ana, 0)
    entry = AuditEntry.objects.get(verb="set")
    assert (entry.before, entry.after) == ({"rate": 0.01}, {"rate": 40})


def test_cancelled_retry_follows_what_was_sent(ana: User) -> None:
    operation, clock = planned(ana, FLAT), Clock()
    look(operation, clock)
    lifecycle.cancel(operation.pk, "tomas")
    look(operation, clock)
    assert (plan_of(operation).operation.state, len(sent(operation))) == (State.FOLLOWING, 20)
    with pytest.raises(AlreadyDecided, match="tomas cancelled operation"):
        lifecycle.cancel(operation.pk, ana)
    with pytest.raises(AlreadyDecided, match="Nothing was paused: tomas cancelled"):
        staged_controls.pause(operation.pk, ana)
    handle(operation, sent(operation))
    look(operation, clock)
    plan = look(operation, clock)
    assert (plan.operation.state, plan.operation.cancelled_by, plan.operation.done) == (State.CANCELLED, "tomas", 20)


def test_cancelled_retry_ends_only_after_its_open_chunk(session: Connection, ana: User) -> None:
    """The messages of that chunk are followed too."""
    operation, clock = planned(ana, FLAT), Clock()
    look(operation, clock)
    handle(operation, sent(operation))
    with session.transaction():
        session.value(postgresql().operation.begin_chunk(), {"operation_id": operation.pk})
        lifecycle.cancel(operation.pk, ana)
        go_by(operation, 4000)
        assert look(operation, clock).operation.state == State.FOLLOWING
    assert look(operation, clock).operation.state == State.CANCELLED


def test_stale_look_does_not_stop_a_resumed_retry(ana: User) -> None:
    operation, clock = planned(ana), Clock()
    look(operation, clock)
    slow = plan_of(operation)
    die(operation, sent(operation)[:1])
    assert look(operation, clock).operation.state == State.STOPPED
    staged_controls.go_on(operation.pk, ana, "that one is known")
    staged_retry._look(slow, clock.now)
    assert plan_of(operation).operation.state == State.RUNNING


def test_outcomes_outlive_pruned_archive_rows(ana: User) -> None:
    """Retention deletes decided rows; events and an old operation's page stay."""
    operation, clock = planned(ana, FLAT), Clock()
    look(operation, clock)
    ids = sent(operation)
    handle(operation, ids[:3])
    die(operation, ids[3:5])
    take(operation, ids[5:])
    look(operation, clock)
    with queue_database().write_session() as connection:
        connection.run("delete from messages.message_archive where id = any (%(ids)s)", {"ids": ids})
    found = classes(operation, given_up=True)
    assert (found["succeeded"], found["dead"], found["unknown"]) == (3, 2, 15)


def test_steering_without_the_right_changes_nothing(ana: User, viewer: User) -> None:
    operation = planned(ana, FLAT)
    acts = (
        staged_controls.pause,
        staged_controls.go_on,
        lambda pk, person: staged_controls.change_rate(pk, person, 5.0),
    )
    for act in acts:
        with pytest.raises(OperationNotAllowed):
            act(operation.pk, viewer)
    assert not AuditEntry.objects.filter(noun="operation").exists()


def test_a_plan_is_kept_in_the_audit_and_refused_where_it_makes_no_sense(ana: User) -> None:
    entry = AuditEntry.objects.get(operation_id=planned(ana, FLAT).pk)
    assert entry.after
    assert entry.after["plan"]["rest_rate"] == 20
    frozen = selection.freeze("retry", ArchiveFilter(exception="TimeoutException"), ana, "console")
    with pytest.raises(OperationRefused, match=r"Nothing was retried\. It cannot stop at 9 dead of any 3"):
        lifecycle.start(frozen.pk, ana, planned=Planned(stop_dead=9, stop_of=3))
    assert Operation.objects.get(pk=frozen.pk).state == State.FROZEN


def test_tables_of_a_version_before_know_no_plan(ana: User) -> None:
    frozen = selection.freeze("retry", ArchiveFilter(exception="TimeoutException"), ana, "console")
    with queue_database().write_session() as connection:
        set_back(connection, 6)
    with pytest.raises(OperationRefused, match=r"know no stages yet: run manage\.py engine_schema"):
        lifecycle.start(frozen.pk, ana, planned=Planned())


def test_unplanned_runner_does_not_run_a_staged_retry(ana: User) -> None:
    operation = planned(ana, FLAT)
    runner.run(operation.pk)
    assert not runner.run_chunk(operation.pk)
    assert sent(operation) == []
    assert RetryPlan.objects.get(pk=operation.pk).next_at is None


def test_messages_decided_by_others_are_counted_as_skipped(ana: User) -> None:
    operation, clock = planned(ana), Clock()
    with queue_database().read_session() as connection:
        second = queries.items(connection, operation.pk)[1].archive_id
    single.act("discard", second, "ivo", "console")
    look(operation, clock)
    assert classes(operation) == {"sent": 4, "skipped": 1, "open": 83}


def test_a_queue_that_is_gone_holds_nothing_up(ana: User) -> None:
    """Its messages fail, each with the reason; those of other queues continue."""
    plan = Planned(try_first=0, then_some=0, rest_rate=5_000, stop_dead=0, hold_above=100_000, waits=False)
    operation, clock = planned(ana, plan, state="dead"), Clock()
    while plan_of(operation).operation.state != State.FOLLOWING:
        staged_retry.step(operation.pk, clock.after(1))
        assert not plan_of(operation).held
    assert classes(operation) == {"sent": 2570, "failed": 27}


def test_a_ceiling_of_which_nothing_is_known_holds(ana: User) -> None:
    plan = Planned(try_first=0, then_some=0, rest_rate=10, hold_above=1_000, waits=False)
    operation, clock = planned(ana, plan), Clock()
    with queue_database().write_session() as connection, connection.transaction():
        connection.run(f"lock table {BILLING}")
        assert look(operation, clock).held
    assert "what is ready in Billing is not known" in plan_of(operation).says
    assert classes(operation) == {"open": 88}, "nothing was sent, and nothing failed"
    assert not look(operation, clock).held


def test_the_ceiling_is_asked_for_once_whatever_number_of_queues_there_are() -> None:
    """With ten thousand queues, one query each would take too long for a preview."""
    for table, depth in (("q7", 600), ("elsewhere", 5_000)):
        Queue.objects.create(schema="public", table=table, kind="input", target_depth=depth)
    retry = Operation(kind=Operation.Kind.RETRY, queues={f'"public"."q{number}"': 1 for number in range(30)})
    with CaptureQueriesContext(console_database) as asked:
        assert plans.careful(retry).hold_above == 600
    assert len(asked) == 1

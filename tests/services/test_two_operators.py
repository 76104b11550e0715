"""Two users act on the same messages at once: each message gets one of the acts, and the later user is told."""

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, runner, selection, staged_retry
from pgqueue_admin.services.operations.errors import AlreadyDecided
from pgqueue_admin.services.operations.plans import Planned
from tests.archived_messages import BILLING, OPERATOR, REFUSED, events_of, number_in, person
from tests.staged_retries import CALM
from tests.waiting import PATIENCE

ALL = 88


@pytest.fixture
def bob(archive: None) -> User:
    return person("bob", *OPERATOR)


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Run the acts at once; return each result or raised refusal, in order."""
    gate, answers = threading.Barrier(len(acts)), dict[int, object]()

    def run(place: int, act: Callable[[], object]) -> None:
        gate.wait(PATIENCE)
        try:
            answers[place] = act()
        except AlreadyDecided as refusal:
            answers[place] = refusal
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return [answers[place] for place in range(len(acts))]


def frozen(kind: str, who: User) -> Operation:
    return selection.freeze(kind, ArchiveFilter(exception=REFUSED), who, "console", "mine")


def to_the_end(operation: Operation) -> None:
    while runner.run_chunk(operation.pk, 3):
        pass


def in_stages(operation: Operation) -> None:
    while Operation.objects.get(pk=operation.pk).state != Operation.State.FOLLOWING:
        staged_retry.step(operation.pk)


def outcomes(operation: Operation) -> Counter[tuple[str, str | None]]:
    """Outcomes, with the user who was first."""
    asked = "select outcome, previous_actor from messages.operation_item where operation = %(pk)s"
    with queue_database().read_session() as connection:
        return Counter(tuple(row) for row in connection.all(asked, {"pk": operation.pk}))


@pytest.mark.parametrize("staged", [False, True], ids=["at once", "in stages"])
def test_concurrent_retry_and_discard_act_once_on_each_message(ana: User, bob: User, staged: bool) -> None:
    before = number_in(BILLING)
    retries, discards = frozen("retry", ana), frozen("discard", bob)
    plan = Planned(try_first=0, then_some=0, rest_rate=100, stop_dead=0, **CALM) if staged else None
    lifecycle.start(retries.pk, ana, planned=plan)
    lifecycle.start(discards.pk, bob)
    at_once(partial(in_stages if staged else to_the_end, retries), partial(to_the_end, discards))

    for each in (retries, discards):
        each.refresh_from_db()
        assert (each.done + each.skipped, each.failed, events_of(each.pk)) == (ALL, 0, each.done)
    assert retries.done + discards.done == ALL, "each has one of both"
    assert number_in(BILLING) == before + retries.done
    others = {("done", None): retries.done, ("skipped", "bob"): discards.done}
    assert outcomes(retries) == Counter({key: number for key, number in others.items() if number})
    others = {("done", None): discards.done, ("skipped", "ana"): retries.done}
    assert outcomes(discards) == Counter({key: number for key, number in others.items() if number})


def test_both_retry_the_same_set(ana: User, bob: User) -> None:
    before = number_in(BILLING)
    both = [frozen("retry", ana), frozen("retry", bob)]
    for each, who in zip(both, (ana, bob), strict=True):
        lifecycle.start(each.pk, who)
    at_once(*(partial(to_the_end, each) for each in both))
    for each in both:
        each.refresh_from_db()
        assert (each.state, each.done + each.skipped) == (Operation.State.DONE, ALL)
    assert sum(each.done for each in both) == number_in(BILLING) - before == ALL


@pytest.mark.parametrize("second", ["start", "cancel"])
def test_both_decide_on_the_same_operation(ana: User, bob: User, second: str) -> None:
    """One user has decided; the other is told who did, and has no audit entry."""
    operation = frozen("retry", ana)
    acts: dict[str, Callable[[], Any]] = {
        "start": partial(lifecycle.start, operation.pk, bob),
        "cancel": partial(lifecycle.cancel, operation.pk, bob),
    }
    answers = at_once(partial(lifecycle.start, operation.pk, ana), acts[second])
    operation.refresh_from_db()
    refused = [each for each in answers if isinstance(each, AlreadyDecided)]
    entries = AuditEntry.objects.filter(operation_id=operation.pk).values_list("who", "verb")
    if second == "start":
        assert len(refused) == 1
        assert operation.started_by in str(refused[0])
        assert list(entries) == [(operation.started_by, "retry")]
    elif refused:  # bob was first: ana was too late
        assert "bob" in str(refused[0])
        assert list(entries) == [("bob", "cancel")]
    else:  # ana was first: bob cancelled what had not begun
        assert sorted(entries) == [("ana", "retry"), ("bob", "cancel")]
    assert operation.state == (Operation.State.WAITING if second == "start" else Operation.State.CANCELLED)
    assert number_in_operation(operation) == 0


def number_in_operation(operation: Operation) -> int:
    return sum(number for (outcome, _), number in outcomes(operation).items() if outcome == "done")

"""Recent changes: a process that crashes again and again does not hide what people did."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from pgqueue_admin.console.overview import activity
from pgqueue_admin.models import Alert, AuditEntry, Process, Queue
from tests.console.pages import Page
from tests.console.sampled import many_queues, signed_in

LOG_HEAD = "2026-11-26 15:28:36,141 WARNING pgqueue.x[31]"


@pytest.fixture
def page(console_database: str) -> Page:
    client = signed_in()
    return lambda path="/": client.get(path).content.decode()


def test_crashes_of_one_endpoint_are_one_line(console_database: str) -> None:
    many_queues(1)
    AuditEntry.objects.create(who="ana", verb="pause", noun="endpoint", subject="Sales")
    now = timezone.now()
    for pid in range(1, 21):
        at = {"started_at": now, "heartbeat_at": now, "ended_at": now + timedelta(seconds=pid)}
        Process.objects.create(
            role="endpoint", endpoint="Segv", host="here", pid=pid, start_ticks=1, state="crashed", exit_code=-11, **at
        )
    html = signed_in().get("/").content.decode()
    listed = re.search('<ul class="ev-list">(.*?)</ul>', html, re.S)
    assert listed
    assert listed[1].count("<li>") == 2
    assert "Segv, pid 20, ended: exit code -11, and 19 more before it" in listed[1]
    people = html[html.index("People and machines") :]
    assert "paused Sales" in people
    assert people.count("Segv, pid") == 1


def test_an_endpoint_and_its_queue_are_told_apart(console_database: str) -> None:
    queue = Queue.objects.create(schema="public", table="Segv", kind="input")
    many_queues(1)
    now = timezone.now()
    about = {"severity": "critical", "sentence": "s", "opened_at": now, "last_seen_at": now}
    Alert.objects.create(kind="no_consumer", subject="x", queue=f'"public"."{queue.table}"', **about)
    Alert.objects.create(kind="worker_crashing", subject="Segv", **about)
    Alert.objects.create(kind="circuit_breaker_open", subject="Segv", cause="Peeking", **about)
    Alert.objects.create(kind="circuit_breaker_open", subject="Segv", cause="Receiving", **about)
    html = signed_in().get("/").content.decode().replace("<wbr>", "")
    assert "endpoint Segv" in html
    assert html.count('data-need="') == 3, "the queue, its endpoint once, and one that is late"


def test_people_and_machines(page: Page) -> None:
    many_queues(1)
    AuditEntry.objects.create(
        who="Tomas", verb="set", noun="endpoint", subject="Notifications", origin="console",
        before={"peek_delay_ms": 1000}, after={"peek_delay_ms": 12_000},
    )  # fmt: skip
    said = page()
    assert "set Notifications: peek delay 1\u00a0s → 12\u00a0s" in said


@pytest.mark.parametrize(
    ("verb", "noun", "subject", "count", "said"),
    [
        ("restart", "endpoint", "Notifications", 1, "restarted Notifications"),
        ("create", "endpoint", "Notifications", 1, "created Notifications"),
        ("retry", "message", '"public"."Billing"', 3, "retried 3 messages of Billing"),
        ("retry", "message", '"public"."Billing"', 1, "retried 1 message of Billing"),
        ("discard", "message", "2 queues", 1284, "discarded 1,284 messages of 2 queues"),
        ("move out", "message", '"public"."Bill ""x"""', 1, 'moved out 1 message of Bill "x"'),
        ("recompute", "history", "history", 3, "recomputed 3 days of history"),
        ("recompute", "history", "history", 1, "recomputed 1 day of history"),
        ("cancel", "history", "history", 2, "cancelled 2 jobs of history"),
        ("run", "history", "history", 1, "asked to read history"),
        ("cancel", "operation", "7", 1, "cancelled operation 7"),
        ("acknowledge", "alert", "12: dead_message x", 1, "acknowledged warning 12: dead_message x"),
        ("withdraw", "alert", "12: dead_message x", 1, "withdrew the acknowledgement of warning 12: dead_message x"),
        ("withdraw", "endpoint", "Elsewhere", 1, "withdrew Elsewhere"),
    ],
)
def test_each_act_is_said_in_the_past_with_what_it_counts(
    verb: str, noun: str, subject: str, count: int, said: str
) -> None:
    entry = AuditEntry(at=timezone.now(), who="ana", verb=verb, noun=noun, subject=subject, count=count)
    assert activity.of_entry(entry).did == said


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, "ended: exit code unknown"),
        ({"exit_code": 3}, "ended: exit code 3"),
        ({"last_error": "Spark has no room."}, "ended: Spark has no room."),
        ({"last_error": "killed: no sign of life for 60 s"}, "killed: no sign of life for 60 s"),
        ({"last_error": "ended by SIGKILL; last line: x"}, "ended by SIGKILL; last line: x"),
        (
            {"last_error": f"ended by SIGKILL; last line: {LOG_HEAD} {'long word ' * 20}"},
            f"ended by SIGKILL; last line: {'long word ' * 9}\N{HORIZONTAL ELLIPSIS}",
        ),
    ],
)
def test_how_a_process_ended_is_said_as_far_as_anybody_saw_it(page: Page, known: dict[str, object], said: str) -> None:
    many_queues(1)
    now = timezone.now()
    times = {"started_at": now, "heartbeat_at": now, "ended_at": now}
    process = Process.objects.create(role="sampler", host="here", pid=7, start_ticks=1, state="lost", **times, **known)
    assert f"sampler, pid 7, {said}" in page()
    assert ("exit code unknown" in page(f"/workers/{process.pk}/log/")) == (not process.exit_code)

"""What changed just before: a process that ends again and again does not hide what people did."""

import re
from datetime import timedelta

from django.utils import timezone

from pgqueue_admin.records.models import Alert, AuditEntry, Process, Queue
from tests.console.sampled import many_queues, signed_in


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
    about = {"severity": "critical", "sentence": "s", "opened_at": now, "seen_at": now}
    Alert.objects.create(kind="nobody_receives", subject="x", queue=f'"public"."{queue.table}"', **about)
    Alert.objects.create(kind="worker_crashing", subject="Segv", **about)
    Alert.objects.create(kind="breaker_open", subject="Segv", cause="Peeking", **about)
    Alert.objects.create(kind="breaker_open", subject="Segv", cause="Receiving", **about)
    html = signed_in().get("/").content.decode().replace("<wbr>", "")
    assert "endpoint Segv" in html
    assert html.count('data-need="') == 3, "the queue, its endpoint once, and one that is late"

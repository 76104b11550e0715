"""Workers: is every process up, and what does the broken one say (C1)."""

import re
import socket
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.utils import timezone

from pgqueue_admin.console.workers import cells
from pgqueue_admin.models import Alert, Endpoint, Process
from tests.console.pages import shown

RATE_11 = ">11</span> <small>/s</small>"


@pytest.fixture
def log_folder(console_database: str) -> Path:
    folder = Path(settings.PGQUEUE["VAR"]) / "log"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def process(**facts: object) -> Process:
    now = timezone.now()
    known = {"role": "endpoint", "endpoint": "Shipping", "host": socket.gethostname(), "pid": 4121, "start_ticks": 1}
    times = {"started_at": now - timedelta(minutes=31), "heartbeat_at": now, "state": "running"}
    return Process.objects.create(**{**known, **times, **facts})


def text(client: Client, address: str = "/workers/") -> str:
    return shown(client, address)


def cell(html: str, row: Process, name: str) -> str:
    """The content of one live cell of a process's row."""
    found = re.search(rf'data-live="process\.{row.pk}\.{name}"[^>]*>(.*?)</td>', html, re.DOTALL)
    assert found is not None
    return found[1]


def test_nothing_has_reported(as_operator: Client, console_database: str) -> None:
    html = text(as_operator)
    assert "No supervisor has reported" in html
    assert "manage.py supervise" in html


def test_a_supervisor_without_endpoints(as_operator: Client, console_database: str) -> None:
    process(role="supervisor", endpoint="", pid=1)
    html = text(as_operator)
    assert "No process is wanted" in html
    assert '<a class="b" href="/endpoints/">How to make one</a>' in html


def test_all_run(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2)
    process(role="supervisor", endpoint="", pid=1)
    process(pid=2)
    row = process(pid=3, slots=4, busy=4, memory_bytes=66_000_000, handled_per_second=11)
    html = text(as_operator)
    assert "All 2 processes run" in html
    assert "How to make one" not in html
    assert "4 of 4" in html
    assert "66 MB" in html
    assert RATE_11 in cell(html, row, "out")
    assert "31 min" in cell(html, row, "up")


def test_last_error_and_host_of_a_process_are_shown(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=1)
    at = timezone.now() - timedelta(minutes=2, seconds=5)
    row = process(host="alpha", last_error="ValueError: no such order", last_error_at=at)
    html = text(as_operator)
    assert re.search(r"Last error, <time [^>]*>[^<]+</time>:.*>ValueError<", cell(html, row, "error"))
    assert "<h2>alpha</h2>" in html
    page = text(as_operator, "/endpoints/Shipping/")
    assert ">ValueError<" in cell(page, row, "error"), "what a handler raised says is for who may read: in its log"
    assert "no such order" not in page
    assert re.search(rf'id="process-{row.pk}">\s*<th [^>]*>\s*alpha\s*<span class="mono">pid 4121<', page)


def test_the_broken_one_says_why_and_what_it_said_last(as_operator: Client, log_folder: Path) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=1)
    log = log_folder / "Shipping.1.log"
    log.write_text("received 40118902\nMemoryError: <script>alert(1)</script>\n")
    ended = {"state": "back-off", "ended_at": timezone.now(), "next_start_at": timezone.now() + timedelta(minutes=2)}
    process(log=str(log), last_error="ended by SIGKILL", **ended)
    process(role="supervisor", endpoint="", pid=1)
    html = text(as_operator)
    for said in (
        "Shipping has no process; 0 of 1 run",
        "ended by SIGKILL",
        "Next start",
        "Start now",
        "Its last lines",
    ):
        assert said in html
    assert "&lt;script&gt;alert(1)" in html


def test_a_lost_heartbeat_is_said(as_operator: Client, console_database: str) -> None:
    row = process(heartbeat_at=timezone.now() - timedelta(minutes=11))
    html = text(as_operator)
    assert "lost heartbeat" in cell(html, row, "state")
    assert "the figures are its last" in cell(html, row, "state")
    assert "20 min" in cell(html, row, "up"), "it began 31 min ago: nobody knows whether it lived on"


def test_hanging_process_is_killed_and_not_offered_a_start(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=1)
    process(role="supervisor", endpoint="", pid=1)
    process(heartbeat_at=timezone.now() - timedelta(seconds=30), busy=2)
    html = text(as_operator)
    assert "Shipping on" in html
    assert "Start now" not in html
    assert "If it hangs, it is killed by" in html
    assert "the 2 messages that it had in flight are received again" in " ".join(html.split())


def test_a_program_of_the_console_that_does_not_work_is_said(as_operator: Client, console_database: str) -> None:
    process(role="supervisor", endpoint="", pid=1)
    hung = process(role="sampler", endpoint="", pid=2, heartbeat_at=timezone.now() - timedelta(seconds=30))
    html = text(as_operator)
    assert "The sampler does not work" in html
    assert "If it hangs, it is killed by" in html
    with override_settings(PGQUEUE={**settings.PGQUEUE, "LIVENESS_TIMEOUT_SECONDS": 0}):
        assert "it is killed" not in text(as_operator)
    assert 'class="n hot" data-live="nav.workers"' in html
    assert cells.live("")["workers.verdict.tone"] == "verdict crit"
    hung.delete()
    process(role="sampler", endpoint="", pid=3, state="back-off", ended_at=timezone.now())
    assert "The sampler does not work" in text(as_operator)
    process(role="sampler", endpoint="", pid=4, host="another")
    html = text(as_operator)
    assert "No process is wanted" in html
    assert 'class="n " data-live="nav.workers"' in html


def test_old_error_is_not_given_as_the_reason_of_a_lost_heartbeat(as_operator: Client, console_database: str) -> None:
    process(role="supervisor", endpoint="", pid=1)
    now = timezone.now()
    known = {"role": "celery-worker", "endpoint": "", "pid": 2, "heartbeat_at": now - timedelta(seconds=30)}
    row = process(last_error="OperationalError", last_error_at=now - timedelta(minutes=9), **known)
    notice = "lost heartbeat.</b>"
    assert "OperationalError" not in text(as_operator).partition(notice)[2].partition("</div>")[0]
    Process.objects.filter(pk=row.pk).update(last_error_at=now - timedelta(seconds=40))
    said = text(as_operator).partition(notice)[2].partition("</div>")[0]
    assert re.search("OperationalError, <time [^>]*>", said)


def test_a_start_that_is_due_is_not_in_the_past(as_operator: Client, console_database: str) -> None:
    process(role="supervisor", endpoint="", pid=1)
    now = timezone.now()
    process(state="back-off", ended_at=now, next_start_at=now - timedelta(seconds=3))
    html = text(as_operator)
    assert "It is started now." in html
    assert "Next start" not in html


def test_an_open_page_is_told_what_changes(as_operator: Client, console_database: str) -> None:
    endpoint = Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2)
    row = process(slots=4, busy=1, last_error="<script>alert(1)</script>", handled_per_second=11)
    told = cells.live("")
    assert "1 of 4" in told[f"process.{row.pk}.busy"]
    assert "<script>" not in told[f"process.{row.pk}.error"]
    assert "&lt;script&gt;alert(1)" in told[f"process.{row.pk}.error"]
    assert RATE_11 in told[f"process.{row.pk}.out"]
    assert told[f"process.{row.pk}.up"].replace("\u00a0", " ").startswith("31 min")
    assert RATE_11 in told[f"staff.{endpoint.pk}.out"]
    assert told[f"staff.{endpoint.pk}.have"] == "1 of 2"
    assert told["workers.verdict"].endswith('#i-crit"/></svg>Shipping has too few processes; 1 of 2 run')
    assert told["workers.verdict.tone"] == "verdict crit", "no green tick beside a sentence that says so"
    process(role="supervisor", endpoint="", pid=1)
    assert cells.live("")["@processes"] == str(row.pk)
    places = text(as_operator) + text(as_operator, "/endpoints/Shipping/")
    for key in told:
        assert key.startswith("@") or re.search(rf'data-live(-class)?="{re.escape(key)}"', places)


def test_a_viewer_reads_no_log(as_viewer: Client, log_folder: Path) -> None:
    log = log_folder / "Shipping.4.log"
    log.write_text("the body of a message\n")
    row = process(log=str(log), state="back-off", ended_at=timezone.now(), last_error="ended by SIGKILL")
    Process.objects.update(last_line="the body of a message")
    said = "Reading it needs the right “Can start, stop, scale and pause endpoints”, which an administrator gives"
    assert said in text(as_viewer, f"/workers/{row.pk}/log/")
    for address in ("/workers/", f"/workers/{row.pk}/log/", "/", "/endpoints/"):
        assert "the body of a message" not in text(as_viewer, address)


def test_last_line_of_a_process_elsewhere_needs_the_read_right(as_operator: Client, console_database: str) -> None:
    gone = {"state": "back-off", "ended_at": timezone.now(), "last_error": "ended with exit code 1"}
    process(host="elsewhere", last_line="KeyError: <b>", **gone)
    process(role="supervisor", endpoint="", pid=1, host="elsewhere")
    said = " ".join(text(as_operator).split())
    assert "ended with exit code 1. Its last line: KeyError: &lt;b&gt;." in said


def test_a_host_that_vanished_is_said(as_operator: Client, console_database: str) -> None:
    silent = timezone.now() - timedelta(minutes=4)
    process(role="supervisor", endpoint="", pid=1, host="house-2", heartbeat_at=silent)
    process(pid=2, host="house-2", heartbeat_at=silent)
    assert "No other supervisor is there to run its processes" in text(as_operator)
    process(role="supervisor", endpoint="", pid=3, host="house-1")
    html = text(as_operator)
    assert "The other supervisors run its share" in html
    assert "house-2 has not been heard from since" in html.replace("<wbr>", "")
    assert html.count("not heard from since") == 1


def test_limits_versions_and_shares_are_shown(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2, memory_mb=512, memory_kill_mb=1024)
    process(pid=2, code_version="shop 4.12.0", memory_bytes=498_000_000, slots=4, busy=3, busy_share=0.62)
    process(pid=3, code_version="shop 4.12.1", memory_bytes=600_000_000)
    html = text(as_operator)
    for said in ("of 512 MB", '<span class="crit-t">600 MB</span>', "62% of the last minute", "2 versions of the code"):
        assert said in html
    page = text(as_operator, "/endpoints/Shipping/")
    assert "Its processes run 2 versions of the code: shop 4.12.0, shop 4.12.1." in page
    assert "memory limit of a process" in page.lower()
    assert "1 GB" in page


def test_a_drain_says_when_it_is_over_and_a_restart_how_far_it_is(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2, restart_version=7, version=7)
    process(pid=2, started_version=7)
    process(pid=3, started_version=6)
    assert "restarting, 1 of 2 done" in text(as_operator)
    Process.objects.filter(pid=3).update(state="draining", busy=1, drain_until=timezone.now() + timedelta(seconds=20))
    html = text(as_operator)
    assert "draining, 1 left" in html
    assert "at the latest" in html


def test_celery_stands_under_the_same_roof(as_operator: Client, console_database: str) -> None:
    process(role="celery-worker", endpoint="", pid=5, slots=2, busy=1, handled=12, memory_bytes=70_000_000)
    process(role="celery-beat", endpoint="", pid=6)
    html = text(as_operator)
    for said in ("Celery worker", "Celery beat", "1 of 2", "70 MB"):
        assert said in html


def test_an_open_circuit_breaker_is_said(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=1)
    process(breakers=[{"what": "Receiving from Shipping", "error": "<b>no answer</b>"}])
    html = text(as_operator, "/endpoints/Shipping/")
    assert "Receiving from Shipping: the circuit breaker of pid 4121" in html
    assert "<b>no answer</b>" not in html


def test_a_process_that_receives_nothing_is_called_deaf(as_operator: Client, console_database: str) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2)
    process(pid=4121)
    process(pid=4122, start_ticks=2)
    at = timezone.now()
    about = {
        "kind": "deaf",
        "severity": "critical",
        "subject": "Shipping",
        "sentence": "s",
        "opened_at": at,
        "last_seen_at": at,
    }
    alert = Alert.objects.create(cause=f"{socket.gethostname()} pid 4121", **about)
    assert text(as_operator).count("deaf: receives nothing") == 1
    alert.resolved_at = at
    alert.save()
    assert "deaf: receives nothing" not in text(as_operator)


def test_one_lost_database_is_one_trouble_of_all_endpoints(as_operator: Client, console_database: str) -> None:
    process(role="supervisor", endpoint="", pid=1)
    for pid, name in enumerate(("Billing", "Shipping"), start=2):
        Endpoint.objects.create(name=name, table=name, desired_processes=1)
        said = [{"what": f"{act} {name}", "error": "It is away.\n\tIs it <on>?"} for act in ("Peeking at", "Receiving")]
        process(pid=pid, endpoint=name, breakers=said)
    html = text(as_operator)
    assert "Circuit breakers of Billing and Shipping are open" in html
    assert html.count("<b>It is away.</b>") == 1
    assert "All 2 processes run" not in html
    assert 'class="tag good"' not in html.partition('id="endpoints"')[2]
    assert "Circuit breakers" in cells.live("")["workers.verdict"]


def test_restarting_one_by_one_is_an_act_of_its_own(
    as_operator: Client, as_viewer: Client, console_database: str
) -> None:
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2)
    assert "Restart one by one…" in text(as_operator, "/endpoints/Shipping/")
    as_viewer.post("/endpoints/Shipping/restart/")
    assert Endpoint.objects.get().restart_version == 0
    answer = as_operator.post("/endpoints/Shipping/restart/", follow=True).content.decode()
    assert "Shipping restarts one by one: 2 processes, the next when the new one is well." in answer
    row = Endpoint.objects.get()
    assert row.restart_version == row.version == 2

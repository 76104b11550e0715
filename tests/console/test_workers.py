"""Workers: is every process up, and what does the broken one say (C1)."""

import socket
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from pgqueue_admin.records.models import Endpoint, Process


@pytest.fixture
def log_folder(console_database):
    folder = Path(settings.PGQUEUE["VAR"]) / "log"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def process(**facts):
    now = timezone.now()
    known = {"role": "endpoint", "endpoint": "Shipping", "host": socket.gethostname(), "pid": 4121, "start_ticks": 1}
    times = {"started_at": now - timedelta(minutes=31), "heartbeat_at": now, "state": "running"}
    return Process.objects.create(**{**known, **times, **facts})


def text(client, address="/workers/"):
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode().replace("\u00a0", " ")


def test_nothing_has_reported(as_operator, console_database):
    html = text(as_operator)
    assert "No supervisor has reported" in html
    assert "manage.py supervise" in html


def test_all_run(as_operator, console_database):
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2)
    process(role="supervisor", endpoint="", pid=1)
    process(pid=2)
    process(pid=3, slots=4, busy=4, memory_bytes=66_000_000, handled_per_second=11)
    html = text(as_operator)
    assert "All 2 processes run" in html
    assert "4 of 4" in html
    assert "66 MB" in html


def test_the_broken_one_says_why_and_what_it_said_last(as_operator, log_folder):
    Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=1)
    log = log_folder / "Shipping.1.log"
    log.write_text("received 40118902\nMemoryError: <script>alert(1)</script>\n")
    ended = {"state": "back-off", "ended_at": timezone.now(), "next_start_at": timezone.now() + timedelta(minutes=2)}
    process(log=str(log), last_error="ended by SIGKILL", **ended)
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


def test_a_lost_heartbeat_is_said(as_operator, console_database):
    process(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert "lost heartbeat" in text(as_operator)


def test_the_whole_log_and_its_filter(as_operator, log_folder):
    log = log_folder / "Shipping.2.log"
    log.write_bytes(b"one INFO\ntwo ERROR\nthree \xff\n" * 400)
    address = f"/workers/{process(log=str(log)).pk}/log/"
    assert "1,000 lines" in text(as_operator, address)
    filtered = text(as_operator, f"{address}?q=error")
    assert "two ERROR" in filtered
    assert "one INFO" not in filtered
    assert "No line holds" in text(as_operator, f"{address}?q=nothing")


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "", "relative.log"])
def test_no_other_file_is_shown(as_operator, log_folder, path):
    html = text(as_operator, f"/workers/{process(log=path).pk}/log/")
    assert "root:" not in html
    assert "The log cannot be read from here" in html


def test_a_log_on_another_host_is_named(as_operator, log_folder):
    log = log_folder / "Shipping.3.log"
    log.write_text("secret of another host\n")
    html = text(as_operator, f"/workers/{process(log=str(log), host='elsewhere').pk}/log/")
    assert "on elsewhere" in html
    assert "secret of" not in html


def test_an_open_page_is_told_what_changes(as_operator, console_database):
    from pgqueue_admin.console import process_cells

    endpoint = Endpoint.objects.create(name="Shipping", table="Shipping", desired_processes=2)
    row = process(slots=4, busy=1, last_error="<script>alert(1)</script>")
    told = process_cells.live("")
    assert "1 of 4" in told[f"process.{row.pk}.busy"]
    assert "<script>" not in told[f"process.{row.pk}.error"]
    assert told[f"staff.{endpoint.pk}.have"] == "1 of 2"
    assert told["workers.verdict"] == "Shipping has too few processes; 1 of 2 run"
    html = text(as_operator)
    for key in told:
        assert key.startswith("@") or f'data-live="{key}"' in html

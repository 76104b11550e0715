"""The log of one process: newest lines, severity, the whole file; and never another file (C1)."""

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from tests.console.pages import shown
from tests.console.test_workers import log_folder, process

__all__ = ["log_folder"]
LINES = [
    "2026-11-25 09:14:20,899 INFO pgqueue_admin.transport[7] Endpoint Shipping receives",
    "2026-11-25 09:14:21,001 WARNING pgqueue_admin.transport[7] the database is slow",
    "2026-11-25 09:14:22,102 ERROR pgqueue_admin.transport[7] 40118902 failed",
    "Traceback (most recent call last):",
    "MemoryError: <script>alert(1)</script>",
    '{"time": "2026-11-25T09:14:23.000+00:00", "level": "INFO", "text": "an ERROR, far behind"}',
    '{"time": "2026-11-25T09:14:24.000+00:00", "level": "ERROR", "text": "as JSON"}',
    "[2026-11-25 09:14:25,000: WARNING/MainProcess] of Celery",
    "[2026-11-25 09:14:26,000: INFO/MainProcess] of Celery, again",
    "Fatal Python error: Segmentation fault",
]


def logged(folder: Path, text: str | bytes, **facts: object) -> str:
    """The address of the log page of a process that printed ``text``."""
    file = folder / f"Shipping.{facts.get('pid', 2)}.log"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return f"/workers/{process(log=str(file), **facts).pk}/log/"


@pytest.mark.parametrize(
    ("level", "there"),
    [("", range(10)), ("warning", (1, 2, 3, 4, 6, 7, 9)), ("error", (2, 3, 4, 6, 9)), ("loud", range(10))],
)
def test_lines_as_bad_as_asked_for(as_operator: Client, log_folder: Path, level: str, there: list[int]) -> None:
    """Lines without a level belong to the error before them; an unknown level is ignored."""
    html = shown(as_operator, f"{logged(log_folder, chr(10).join(LINES))}?level={level}")
    marks = ["receives", "is slow", "40118902", "Traceback", "MemoryError", "far behind", "as JSON"]
    marks += ["of Celery<", "of Celery, again", "Segmentation"]
    assert [number for number, mark in enumerate(marks) if mark in html] == list(there)
    assert "<script>alert" not in html


def test_the_page_keeps_what_it_was_asked_for(as_operator: Client, log_folder: Path) -> None:
    address = f"{logged(log_folder, chr(10).join(LINES))}?q=failed&level=error"
    html = shown(as_operator, address)
    assert '<option value="error" selected>' in html
    assert 'href="?q=failed&amp;level=error&amp;follow=1"' in html
    assert "1 line of 10" in html
    assert "every 2s" not in html
    following = shown(as_operator, f"{address}&follow=1")
    assert 'hx-trigger="every 2s"' in following
    assert 'href="?q=failed&amp;level=error"' in following


def test_log_of_an_ended_process_is_not_followed(as_operator: Client, log_folder: Path) -> None:
    html = shown(as_operator, f"{logged(log_folder, LINES[0], ended_at=timezone.now())}?follow=1")
    assert "every 2s" not in html
    assert "nothing is added" in html


def test_the_whole_file(as_operator: Client, log_folder: Path) -> None:
    """Unchanged, including what lies before the part that the page reads."""
    text = b"first\n" + b"x" * 99 * 1000 + b"\xff last\n"
    answer = as_operator.get(f"{logged(log_folder, text)}whole/")
    assert b"".join(answer.streaming_content) == text  # type: ignore[attr-defined]
    assert answer["Content-Disposition"] == 'attachment; filename="Shipping.2.log"'
    assert answer["Content-Type"] == "text/plain"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_the_whole_file_is_for_who_may_read_it(as_viewer: Client, log_folder: Path) -> None:
    answer = as_viewer.get(f"{logged(log_folder, 'the body of a message')}whole/")
    assert answer.status_code == 403
    assert b"the body of" not in answer.content


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "", "relative.log"])
def test_no_other_file_is_given_out(as_operator: Client, log_folder: Path, path: str) -> None:
    assert as_operator.get(f"/workers/{process(log=path).pk}/log/whole/").status_code == 404


def test_the_whole_log_and_its_filter(as_operator: Client, log_folder: Path) -> None:
    log = log_folder / "Shipping.2.log"
    log.write_bytes(b"one INFO\ntwo ERROR\nthree \xff\n" * 400)
    address = f"/workers/{process(log=str(log)).pk}/log/"
    assert "1,000 lines" in shown(as_operator, address)
    filtered = shown(as_operator, f"{address}?q=error")
    assert "two ERROR" in filtered
    assert "one INFO" not in filtered
    assert "No line holds" in shown(as_operator, f"{address}?q=nothing")


@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd", "", "relative.log"])
def test_no_other_file_is_shown(as_operator: Client, log_folder: Path, path: str) -> None:
    html = shown(as_operator, f"/workers/{process(log=path).pk}/log/")
    assert "root:" not in html
    assert "The log cannot be read from here" in html


def test_a_log_on_another_host_is_named(as_operator: Client, log_folder: Path) -> None:
    log = log_folder / "Shipping.3.log"
    log.write_text("secret of another host\n")
    html = shown(as_operator, f"/workers/{process(log=str(log), host='elsewhere').pk}/log/")
    assert "on elsewhere" in html
    assert "secret of" not in html

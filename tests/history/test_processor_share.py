"""A process without CPU time for long takes a share until that is over, and none afterwards."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgqueue_admin.history.runtime import cancellation, jvm_watchdog
from pgqueue_admin.osproc import idle_cgroup
from tests.waiting import until


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """``cpu.idle`` of the test's own control group, with a process in it."""
    monkeypatch.setattr(idle_cgroup, "NAME", f"pgqueue-test-{tmp_path.name}")
    with subprocess.Popen(["cat"], stdin=-1) as process:
        made = idle_cgroup.put(process.pid)
        if made:
            yield idle_cgroup._place() / "cpu.idle"
        process.communicate()
    if not made:
        pytest.skip("the system lets us make no control group")
    idle_cgroup._place().rmdir()


def test_driver_insists_on_cpu_after_its_patience(
    idle: Path, monkeypatch: pytest.MonkeyPatch, console_database: str
) -> None:
    monkeypatch.setattr(cancellation, "EVERY", 0.01)
    monkeypatch.setattr(cancellation, "PATIENT", 0.0)
    with cancellation.cancelled_with(SimpleNamespace(), lambda: True):
        until(lambda: idle.read_text() == "0\n", what="it takes its share")
    assert idle.read_text() == "1\n"


def test_driver_takes_no_cpu_before_its_patience_ends(
    idle: Path, monkeypatch: pytest.MonkeyPatch, console_database: str
) -> None:
    """Queried five times, it has run as often."""
    monkeypatch.setattr(cancellation, "EVERY", 0.01)
    asked: list[str] = []

    def is_wanted() -> bool:
        asked.append(idle.read_text())
        return True

    with cancellation.cancelled_with(SimpleNamespace(), is_wanted):
        until(lambda: len(asked) >= 5, what="it looks again and again")
    assert set(asked) == {"1\n"}


def test_a_java_that_is_silent_is_given_a_share_until_it_answers(idle: Path) -> None:
    silence = jvm_watchdog.JvmSilence()
    assert not any(silence.is_too_long(False) for _ in range(jvm_watchdog.PATIENT - 1))
    assert idle.read_text() == "1\n"
    assert not silence.is_too_long(False)
    assert idle.read_text() == "0\n"
    assert not silence.is_too_long(True)
    assert idle.read_text() == "1\n"


def test_a_silence_is_too_long_once_no_look_of_hundreds_was_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the system allows no control group."""
    monkeypatch.setattr(idle_cgroup, "NAME", "pgqueue-test-none")
    silence = jvm_watchdog.JvmSilence()
    assert not any(silence.is_too_long(False) for _ in range(jvm_watchdog.UP - 1))
    assert not silence.is_too_long(True)
    assert not any(silence.is_too_long(False) for _ in range(jvm_watchdog.LOOKS - 1))
    assert silence.is_too_long(False)

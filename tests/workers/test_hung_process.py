"""A process that hangs is reported and replaced: a real SIGSTOP stops it, and it never exits."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.models import Process
from pgqueue_admin.workers.reporting import liveness_file, process_identity
from pgqueue_admin.workers.supervisor.programs import Program, SupervisedProgram, programs
from pgqueue_admin.workers.supervisor.role import singletons
from tests.waiting import until
from tests.workers.host import House, want
from tests.workers.shop.handlers import TYPE

LIMITS = {"sampler": 10, "endpoint": 8}  # seconds
REAL_TIME = signal.SIGRTMIN + 2  # Python has no constant for it
BEATS = """
import threading
import django
django.setup()
from pgqueue_admin.workers.reporting.liveness_file import LivenessFile
mine, pause = LivenessFile(), threading.Event()
while True:
    mine.beat()
    pause.wait(0.05)
"""


class Silent(liveness_file.ProcessSilence):
    """An hour of silence at each look."""

    def look(self, shown: int) -> float:
        return 3600.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silence_is_counted_from_the_last_turn() -> None:
    clock = Clock()
    silence = liveness_file.ProcessSilence(clock)
    for shown, expected in ((0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)):
        clock.now += 1
        assert silence.look(shown) == expected


def test_watcher_that_was_stopped_itself_counts_no_long_silence() -> None:
    clock = Clock()
    silence = liveness_file.ProcessSilence(clock)
    silence.look(1)
    clock.now += 3600
    assert silence.look(1) == liveness_file.LONGEST_LOOK


def test_a_start_has_more_time(tmp_path: Path, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "VAR": tmp_path}
    clock = Clock()
    silence, mine = liveness_file.ProcessSilence(clock), process_identity.mine()
    said = []
    while clock.now < 200:
        clock.now += 1
        said.append(silence.broken(mine, after=60))
    assert [bool(each) for each in said] == [False] * 120 + [True] * 80
    assert plain(said[-1]) == "it showed no sign of life for 2 min"


def test_a_full_disk_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness_file, "path", lambda process: Path("/dev/full"))
    mine, me = liveness_file.LivenessFile(), process_identity.mine()
    before = liveness_file.of(me)
    until(lambda: mine.beat() or liveness_file.of(me) != before, what="it is seen")  # type: ignore[func-returns-value]


def test_a_disk_that_takes_no_file_at_all_ends_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = tmp_path / "not yet" / "pulse"
    monkeypatch.setattr(liveness_file, "path", lambda process: at)
    mine, me = liveness_file.LivenessFile(), process_identity.mine()
    mine.beat()
    assert liveness_file.of(me) == liveness_file.NOTHING
    at.parent.mkdir()
    mine.beat()
    assert liveness_file.of(me)


@pytest.mark.chaos
def test_a_stopped_sampler_and_a_stopped_endpoint_are_killed_and_replaced(house: House, sales: Any, look: Any) -> None:
    """The message that the endpoint held is handled by the next process."""
    house.environment["PGQUEUE_LIVENESS_TIMEOUT_SECONDS"] = "8"
    want(1)
    house.supervise("--without", "ingester", "--without", "alerter")
    stopped = [until(partial(one, role, state="running"), what=f"{role} runs") for role in LIMITS]
    hold = house.var / "hold"
    sales.send("Sales", {"hold": str(hold)}, type=TYPE)
    until(hold.with_suffix(".held").exists, what="it is in hand")
    for each in stopped:
        os.kill(each.pid, signal.SIGSTOP)
    hold.touch()
    for each in stopped:
        told = {"pid": each.pid, "last_error__contains": f"no sign of life for {LIMITS[each.role]}"}
        until(partial(one, each.role, **told), what=f"of the {each.role} it is told")
        fresh = until(partial(one, each.role, state="running", ended_at=None), what=f"another {each.role} runs")
        assert fresh.pid != each.pid
        assert not liveness_file.of(process_identity.ProcessIdentity(house.host, each.pid, each.start_ticks))
    until(lambda: look.value("select count(*) from handled") == 1)


def one(role: str, **wanted: Any) -> Process | None:
    return Process.objects.filter(role=role, **wanted).first()


def plain(said: str) -> str:
    return said.replace("\u00a0", " ")


@pytest.fixture
def keep(tmp_path: Path, settings: Any) -> Iterator[Callable[[str], SupervisedProgram]]:
    """``keep(code)``: a program that may be silent for a second."""
    settings.PGQUEUE = {**settings.PGQUEUE, "VAR": tmp_path, "LIVENESS_TIMEOUT_SECONDS": 1.0}
    worker = {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.base_settings", "PGQUEUE_STATE_DIR": str(tmp_path)}
    started: list[SupervisedProgram] = []

    def keep(code: str) -> SupervisedProgram:
        started.append(SupervisedProgram(Program("celery-beat", (sys.executable, "-c", code), 5, worker, beats=True)))
        started[-1].start()
        return started[-1]

    yield keep
    for kept in started:
        kept.end(0)


def test_a_program_that_hangs_before_its_first_turn(keep: Callable[[str], SupervisedProgram], monkeypatch: Any) -> None:
    monkeypatch.setattr(liveness_file, "LONGEST_START", 2.0)
    said = until(keep("import signal; signal.pause()").look, what="it is told")
    assert "celery-beat ended (it showed no sign of life for 2 s, killed by SIGKILL)" in plain(said)


def test_a_stopped_program_of_ours_is_killed_and_started_again(keep: Callable[[str], SupervisedProgram]) -> None:
    kept = keep(BEATS)
    stopped = kept.pid
    until(lambda: liveness_file.of(process_identity.of(stopped)), what="it beats")
    os.kill(stopped, signal.SIGSTOP)
    said = until(kept.look, what="it is told")
    assert "celery-beat ended (it showed no sign of life for 1 s, killed by SIGKILL)" in plain(said)
    until(lambda: kept.look() or kept.running, what="another one runs")
    assert kept.pid != stopped


def test_program_that_cannot_be_started_is_tried_again(
    keep: Callable[[str], SupervisedProgram], tmp_path: Path
) -> None:
    """As on a full disk: its log cannot be created because a folder has its name."""
    kept = keep("import signal; signal.pause()")
    log = tmp_path / "log" / "celery-beat.log"
    log.unlink()
    log.mkdir()
    os.kill(kept.pid, signal.SIGKILL)
    assert "celery-beat ended (killed by SIGKILL)" in until(kept.look, what="its end is told")
    assert "celery-beat cannot be started: [Errno 21] Is a directory" in until(kept.look, what="that is told, too")
    log.rmdir()
    until(lambda: kept.look() or kept.running, what="it runs again")


def test_program_ended_by_a_real_time_signal_is_reported(keep: Callable[[str], SupervisedProgram]) -> None:
    kept = keep("import signal; signal.pause()")
    os.kill(kept.pid, REAL_TIME)
    said = until(kept.look, what="it is told")
    assert f"celery-beat ended (killed by signal {REAL_TIME})" in said


def test_only_programs_with_a_pulse_are_judged_by_it() -> None:
    assert {program.name for program in programs() if program.beats} == {"celery-worker", "celery-beat"}


def test_liveness_timeout_of_0_judges_no_process(keep: Callable[[str], SupervisedProgram], settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "LIVENESS_TIMEOUT_SECONDS": 0.0, "SPARK_MASTER": "local"}
    assert not any(role.hung_after for role in singletons())
    kept = keep("import signal; signal.pause()")
    kept._silence = Silent()
    assert [kept.look() for _ in range(3)] == [None] * 3
    assert kept.running


def test_the_limit_leaves_room_for_a_slow_turn(settings: Any) -> None:
    settings.PGQUEUE = {
        **settings.PGQUEUE,
        "SAMPLE_SECONDS": 300.0,
        "LIVENESS_TIMEOUT_SECONDS": 60.0,
        "SPARK_MASTER": "local",
    }
    limits = {role.key.kind: role.hung_after for role in singletons() if role.hung_after}
    assert limits == {"sampler": 660, "ingester": 60, "expirer": 60, "alerter": 60, "history": 60}

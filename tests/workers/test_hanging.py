"""A process that hangs alive is told and replaced: stopped by a real SIGSTOP, it has not ended and never will."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pgqueue_admin.records.models import Process
from pgqueue_admin.workers import identity, pulse
from pgqueue_admin.workers.kept import Kept
from pgqueue_admin.workers.programs import Program
from pgqueue_admin.workers.role import singletons
from tests.waiting import until
from tests.workers.house import House

BEATS = """
import threading
import django
django.setup()
from pgqueue_admin.workers.pulse import Pulse
mine, pause = Pulse(), threading.Event()
while True:
    mine.beat()
    pause.wait(0.05)
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_silence_is_counted_from_the_last_turn() -> None:
    clock = Clock()
    silence = pulse.Silence(clock)
    for shown, expected in ((b"", 0), (b"", 0), (b"1", 0), (b"1", 1), (b"1", 2), (b"2", 0), (b"2", 1)):
        clock.now += 1
        assert silence.look(shown) == expected


def test_who_was_held_up_itself_has_not_seen_a_silence() -> None:
    clock = Clock()
    silence = pulse.Silence(clock)
    silence.look(b"1")
    clock.now += 3600
    assert silence.look(b"1") == pulse.LONGEST_LOOK


def test_a_stopped_sampler_is_killed_and_replaced(house: House) -> None:
    house.environment["HUNG_SECONDS"] = "8"
    house.supervise("--without", "ingester", "--without", "alerter")
    stopped = until(lambda: sampler(state="running"), what="it samples")
    os.kill(stopped.pid, signal.SIGSTOP)
    until(lambda: sampler(pid=stopped.pid, last_error__contains="no sign of life for 10"), what="it is told")
    fresh = until(lambda: sampler(state="running", ended_at=None), what="another one samples")
    assert fresh.pid != stopped.pid
    assert not pulse.of(identity.Identity(house.host, stopped.pid, stopped.start_ticks))


def sampler(**wanted: Any) -> Process | None:
    return Process.objects.filter(role="sampler", **wanted).first()


def test_a_stopped_program_of_ours_is_killed_and_started_again(tmp_path: Path, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "VAR": tmp_path, "HUNG_SECONDS": 1.0}
    worker = {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.worker_settings", "PGQUEUE_VAR": str(tmp_path)}
    kept = Kept(Program("celery-beat", (sys.executable, "-c", BEATS), 5, worker))
    kept.start()
    try:
        stopped = kept.pid
        until(lambda: pulse.of(identity.of(stopped)), what="it beats")
        os.kill(stopped, signal.SIGSTOP)
        said = until(kept.look, what="it is told")
        assert "celery-beat ended (it showed no sign of life for 1 s, killed by SIGKILL)" in said.replace("\u00a0", " ")
        until(lambda: kept.look() or kept.running, what="another one runs")
        assert kept.pid != stopped
    finally:
        kept.end(0)


def test_the_limit_leaves_room_for_a_slow_turn(settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SAMPLE_SECONDS": 300.0, "HUNG_SECONDS": 60.0}
    limits = {role.key.kind: role.hung_after for role in singletons() if role.hung_after}
    assert limits == {"sampler": 660, "ingester": 60, "alerter": 60}

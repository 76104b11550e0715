"""A process that can wait leaves a processor to busy ones, with all its children, and takes it back afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgqueue_admin.osproc import cpu_affinity
from pgqueue_admin.osproc.cpu_affinity import CpuShare
from pgqueue_admin.osproc.process_tree import seconds_of
from tests.waiting import until

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system binds nobody to processors")
ALL = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set[int]()
BURN = "while True: pass"
# measures once per input line and prints the affinity of its threads and of a child's
LOOKS = """
import json, os, subprocess, sys, threading
from pathlib import Path
from pgqueue_admin.osproc import cpu_affinity, process_tree
cpu_affinity.AGE = 0.0
threading.Thread(target=threading.Event().wait, daemon=True).start()
child = subprocess.Popen(["cat"], stdin=-1)
of_this = cpu_affinity.CpuShare()
for line in sys.stdin:
    cpu_affinity._STAT = Path(line.strip())
    busy = of_this.are_others_busy()
    threads = process_tree.threads(os.getpid())
    print(json.dumps([busy, [sorted(os.sched_getaffinity(each)) for each in threads]]), flush=True)
child.kill()
"""


@contextmanager
def burning(on: int | None = None) -> Iterator[int]:
    """Run a busy loop; ``on`` pins it to a processor."""
    process = subprocess.Popen([sys.executable, "-c", BURN])
    if on is not None:
        os.sched_setaffinity(process.pid, {on})
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(len(ALL) < 2, reason="with one processor none is left to anybody")
def test_the_busiest_is_left_to_others_while_they_are_at_work() -> None:
    told = f"/proc/stat\n{os.devnull}\n"
    with burning(min(ALL)):
        said = subprocess.run([sys.executable, "-c", LOOKS], input=told, capture_output=True, text=True, check=True)
    busy, afterwards = map(json.loads, said.stdout.splitlines())
    of_three = "two threads of its own, one of its child's"
    assert [busy[0], {len(may_run) for may_run in busy[1]}, len(busy[1])] == [True, {len(ALL) - 1}, 3], of_three
    assert afterwards == [False, [sorted(ALL)] * 3], "nobody is at work any more"


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The processors left to others, of three, at each change; this process keeps its own affinity."""
    changes: list[set[int]] = []

    def bound(_: int, wanted: set[int]) -> None:
        if changes[-1:] != [{0, 1, 2} - wanted]:
            changes.append({0, 1, 2} - wanted)

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(os, "sched_setaffinity", bound)
    monkeypatch.setattr(cpu_affinity, "LEAST", 0.0)
    return changes


def used(monkeypatch: pytest.MonkeyPatch, *looks: dict[int, float]) -> None:
    """Set the seconds used on each processor, one dict per measurement."""
    told = iter(looks)
    monkeypatch.setattr(cpu_affinity, "_seconds_of_each", lambda _: next(told))


BUSY = {0: 5.0, 1: 9.0, 2: 7.0}, {0: 5.1, 1: 9.2, 2: 107.0}


def test_the_one_that_others_use_most_is_left(monkeypatch: pytest.MonkeyPatch, left: list[set[int]]) -> None:
    used(monkeypatch, *BUSY)
    CpuShare().look()
    assert left == [{2}]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({0: 5.0, 1: 9.0}, {0: 5.0, 1: 9.0}),  # nobody else is busy
        ({0: 5.0}, {0: 500.0}),  # there is no other
        ({}, {}),  # the system does not tell
    ],
)
def test_no_cpu_is_left_without_busy_others_or_a_spare_cpu(
    monkeypatch: pytest.MonkeyPatch, left: list[set[int]], then: dict[int, float], now: dict[int, float]
) -> None:
    used(monkeypatch, *BUSY, then, now)
    of_this = CpuShare()
    of_this.look()
    of_this.rest()
    of_this.look()
    assert left == [{2}, set()]


def test_cpu_time_of_the_process_and_its_children_is_not_others(
    monkeypatch: pytest.MonkeyPatch, left: list[set[int]]
) -> None:
    """As if nobody else were busy: all CPU time is used by this family."""
    monkeypatch.setattr(cpu_affinity, "_seconds_of_each", lambda _: {0: seconds_of(os.getpid()), 1: 0.0})
    with burning() as child:
        of_this, before = CpuShare(), seconds_of(child)
        until(lambda: seconds_of(child) >= before + 1, what="a child of ours was busy")
        of_this.look()
    assert left == []


def test_a_look_back_at_a_moment_says_nothing(monkeypatch: pytest.MonkeyPatch, left: list[set[int]]) -> None:
    used(monkeypatch, *BUSY)
    monkeypatch.setattr(cpu_affinity, "LEAST", 3600.0)
    CpuShare().look()
    assert left == []


def test_amid_work_it_looks_now_and_then(monkeypatch: pytest.MonkeyPatch, left: list[set[int]]) -> None:
    used(monkeypatch, *BUSY)
    of_this = CpuShare()
    assert not of_this.are_others_busy(), "it has looked just before"
    monkeypatch.setattr(cpu_affinity, "AGE", 0.0)
    used(monkeypatch, *BUSY)
    assert of_this.are_others_busy()
    assert left == [{2}]


@pytest.mark.parametrize("begins", ["look", "are_others_busy"])
def test_long_work_takes_all_cpus_back(begins: str, monkeypatch: pytest.MonkeyPatch, left: list[set[int]]) -> None:
    used(monkeypatch, *BUSY, BUSY[1], BUSY[1])
    of_this = CpuShare()
    of_this.look()
    of_this.insist()
    assert left == [{2}], "its work has just begun"
    of_this.rest()
    monkeypatch.setattr(cpu_affinity, "PATIENT", 0.0)
    of_this.insist()
    assert left == [{2}], "who rests has no work that takes long"
    monkeypatch.setattr(cpu_affinity, "LEAST", 3600.0)
    getattr(of_this, begins)()
    of_this.insist()
    assert left == [{2}, set()]


def test_only_what_is_used_of_the_processors_it_may_use_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A container may use two processors of a large machine: load elsewhere is nobody that it could make room for."""
    stat = tmp_path / "stat"
    # user nice system idle iowait irq softirq steal
    stat.write_text("cpu 900 0 0 9 9\ncpu0 1 2 4 1000 1000 8 16 1000\ncpu1 100 0 0 0 0 0 0 0\ncpu10 500 0 0\nintr 7\n")
    monkeypatch.setattr(cpu_affinity, "_STAT", stat)
    tick = os.sysconf("SC_CLK_TCK")
    assert cpu_affinity._seconds_of_each({0}) == {0: 31 / tick}
    assert cpu_affinity._seconds_of_each({0, 1, 7}) == {0: 31 / tick, 1: 100 / tick}

"""The process that reads history leaves a processor free for other processes."""

import os
import subprocess
import sys
from typing import Any

import pytest

from pgqueue_admin.history import batch_loop
from pgqueue_admin.osproc.cpu_affinity import CpuShare
from pgqueue_admin.workers.processes.history_process import HistoryProcess
from tests.waiting import until
from tests.workers.host import House
from tests.workers.unexpected_exit import Unasked


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system binds nobody to processors")
def test_history_leaves_one_to_who_is_at_work(house: House, look: Any) -> None:
    burning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    history = house.manage("history")
    try:
        wanted = len(os.sched_getaffinity(0)) - 1 or 1
        until(lambda: len(os.sched_getaffinity(history.pid)) == wanted, what="it leaves one")
    finally:
        burning.kill()
        burning.wait()
        history.terminate()
        said, _ = history.communicate(timeout=60)
    assert history.returncode == 0, said


@pytest.mark.parametrize(("is_busy", "here"), [(True, [1, 1, 1, 1]), (False, [1, 1, 2, 2])])
def test_a_batch_is_read_in_one_part_where_two_are_no_faster(is_busy: bool, here: list[int]) -> None:
    assert [batch_loop._parts(rows, is_local=True, is_busy=is_busy) for rows in (100, 19_999, 20_000, 500_000)] == here
    elsewhere = [batch_loop._parts(rows, is_local=False, is_busy=is_busy) for rows in (100, 500_000)]
    assert elsewhere == [2, 2], "a cluster has its own machines"


class Ended(Exception):
    """The observed step has begun."""


def test_history_looks_for_busy_cpus_at_rest_and_insists_at_work(
    console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    did = list[str]()
    for name in ("look", "rest", "insist"):
        monkeypatch.setattr(CpuShare, name, lambda _, name=name: did.append(name))
    monkeypatch.setattr(HistoryProcess, "_is_due", lambda _: did.append("works"))
    process = HistoryProcess(Unasked())  # type: ignore[arg-type]
    process.run_once()
    assert did == ["look", "works", "rest"]
    monkeypatch.setattr(HistoryProcess, "_report", ends)
    with pytest.raises(Ended):
        process.beat()
    assert did[3:] == ["insist"]
    process.close()


def ends(_: HistoryProcess) -> None:
    raise Ended

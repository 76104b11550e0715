"""The process that reads history leaves a processor to those at work beside it."""

import os
import subprocess
import sys
from typing import Any

import pytest

from pgqueue_admin.embedded.processors import Processors
from pgqueue_admin.pipeline import driver
from pgqueue_admin.workers.pipelining import Pipelining
from tests.waiting import until
from tests.workers.house import House
from tests.workers.unasked import Unasked


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system binds nobody to processors")
def test_the_pipeline_leaves_one_to_who_is_at_work(house: House, look: Any) -> None:
    burning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    pipeline = house.manage("pipeline")
    try:
        wanted = len(os.sched_getaffinity(0)) - 1 or 1
        until(lambda: len(os.sched_getaffinity(pipeline.pid)) == wanted, what="it leaves one")
    finally:
        burning.kill()
        burning.wait()
        pipeline.terminate()
        said, _ = pipeline.communicate(timeout=60)
    assert pipeline.returncode == 0, said


@pytest.mark.parametrize(("is_busy", "here"), [(True, [1, 1, 1, 1]), (False, [1, 1, 2, 2])])
def test_a_batch_is_read_in_one_part_where_two_are_no_faster(is_busy: bool, here: list[int]) -> None:
    assert [driver._parts(rows, is_local=True, is_busy=is_busy) for rows in (100, 19_999, 20_000, 500_000)] == here
    elsewhere = [driver._parts(rows, is_local=False, is_busy=is_busy) for rows in (100, 500_000)]
    assert elsewhere == [2, 2], "a cluster has its own machines"


class Ended(Exception):
    """What is looked at has begun."""


def test_it_looks_at_others_while_it_rests_and_insists_while_it_works(
    console_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    did = list[str]()
    for name in ("look", "rest", "insist"):
        monkeypatch.setattr(Processors, name, lambda _, name=name: did.append(name))
    monkeypatch.setattr(Pipelining, "_is_due", lambda _: did.append("works"))
    pipelining = Pipelining(Unasked())  # type: ignore[arg-type]
    pipelining.turn()
    assert did == ["look", "works", "rest"]
    monkeypatch.setattr(Pipelining, "_report", ends)
    with pytest.raises(Ended):
        pipelining.beat()
    assert did[3:] == ["insist"]
    pipelining.close()


def ends(_: Pipelining) -> None:
    raise Ended

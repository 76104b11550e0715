"""The process that reads history leaves a processor to those at work beside it."""

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.waiting import until
from tests.workers.house import House


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

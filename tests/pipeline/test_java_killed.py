"""kill -9 of a driver's Java alone: its process ends, too, with a clear word, and the next one reads on."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.records.models import HistoryBatch
from tests.pipeline.tables import died
from tests.waiting import until

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]


def test_a_driver_without_its_java_gives_way_to_a_new_one(
    console_database: str, connect: Callable[[str], Any], var: Path, tmp_path: Path
) -> None:
    database = connect(console_database)
    died(database)
    driver = start(console_database, var, tmp_path)
    try:
        reads(driver, 1)
        os.kill(java_of(driver.pid), signal.SIGKILL)
        died(database)
        assert until(driver.poll, 180, "it does not stay to find no Java for ever") == 1
        said = (tmp_path / "driver.log").read_text().splitlines()
        assert "History is read on by a new process, this one ends: Spark's Java has ended, with -9." in said[-1]
        driver = start(console_database, var, tmp_path)
        reads(driver, 2)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def start(dsn: str, var: Path, folder: Path) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "DATABASE_URL": dsn, "HISTORY_DIR": str(folder / "history"), "PGQUEUE_VAR": str(var)}
    environ |= {"SPARK_MASTER": "local[2,4]", "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.worker_settings"}
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "manage.py", "pipeline"],
            cwd=ROOT, env=environ, start_new_session=True, stdout=log, stderr=log,
        )  # fmt: skip


def reads(driver: "subprocess.Popen[bytes]", rows: int) -> None:
    def has_read() -> bool:
        assert driver.poll() is None, "it runs"
        return sum(batch.kept or 0 for batch in HistoryBatch.objects.filter(state="done")) == rows

    until(has_read, 240, f"{rows} rows are read")


def java_of(pid: int) -> int:
    (child,) = [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
        if "java" in Path(f"/proc/{child}/comm").read_text()
    ]
    return child

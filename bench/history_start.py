"""A driver's cold first job: ours with its archive of classes, against pyspark's default start."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.table import Row, row


def cold(dsn: str, scratch: Path, select: str, rounds: int) -> Row:
    """Seconds from the start of the process to its figures."""
    from pgqueue_admin.history.runtime import jvm_cds

    wanted = jvm_cds.place(scratch)
    if wanted is not None:
        jvm_cds.begin(scratch, wanted).wait()
    taken: dict[str, list[float]] = {"defaults": [], "ours": []}
    for _ in range(rounds):
        for how, found in taken.items():
            found.append(first(dsn, how, scratch, select))
    floor, ours = (statistics.median(taken[how]) for how in ("defaults", "ours"))
    archived = "" if wanted is not None and wanted.exists() else ", no archive of classes"
    name = f"first job of a cold driver, against pyspark's {floor:.1f} s{archived}"
    return row(name, 100 * ours / floor, "%", floor=None, target=60)


def first(dsn: str, how: str, scratch: Path, select: str) -> float:
    command = [sys.executable, "-m", "bench.history_side", "cold", dsn, how, str(scratch), select]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None
        if child.stdout.readline() != b"done\n":
            raise SystemExit(f"The first job of {how} did not end: {' '.join(command[:-1])}")
        return time.monotonic() - began

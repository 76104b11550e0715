"""The same figures by plain SQL over the archive, by DuckDB over the files, and by Spark: when does Spark pay?"""

import importlib
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.history_archive import WARM, Archive, seconds
from bench.table import Row, row

ROOT = Path(__file__).resolve().parent.parent
DUCKDB = "duckdb==1.4.4"
# as docs/how-to/history.md shows them, for the archive alone and with processing times
SQL = """
select date_trunc('minute', died_at) as minute, endpoint, message_type, result, count(*) as messages,
  percentile_disc(array[0.5, 0.95, 0.99]) within group (order by died_at - sent_at) as critical,
  percentile_disc(array[0.5, 0.95, 0.99]) within group (order by died_at
    - to_timestamp(headers::jsonb ->> 'NServiceBus.ProcessingStarted', 'YYYY-MM-DD HH24:MI:SS:US')) as processing
from messages.message_archive where seq > %(after)s group by 1, 2, 3, 4
"""
DUCK = """
select date_trunc('minute', ended_at) as minute, endpoint, type, result, count(*) as messages,
  quantile_disc(critical_ms, [0.5, 0.95, 0.99]) as critical,
  quantile_disc(processing_ms, [0.5, 0.95, 0.99]) as processing
from read_parquet($paths) group by all
"""


def beside(archive: Archive, rows: int, rounds: int) -> list[Row]:
    """Compare over ``rows`` more messages; the floor is Spark, which makes all grains and mergeable histograms."""
    after = archive.rows
    archive.fill(rows)
    archive.driver.run_once()  # in batches without other messages: files of mixed batches are excluded
    paths = files(after)
    ways: dict[str, Callable[[], object]] = {
        "Spark": lambda: by_spark(archive, paths),
        "plain SQL over the archive": lambda: archive.connection.all(SQL, {"after": after}),
    }
    if duckdb := installed(ROOT / "var/bench-duckdb"):
        ways["DuckDB over the files"] = lambda: duckdb.connect().execute(DUCK, {"paths": paths}).fetchall()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(WARM + rounds):
        for name, work in ways.items():
            taken[name].append(rows / seconds(work))
    rates = {name: statistics.median(found[WARM:]) for name, found in taken.items()}
    spark = rates.pop("Spark")
    return [row(f"figures by {name}, against Spark", rate, "/s", floor=spark, target=0) for name, rate in rates.items()]


def files(after: int) -> list[str]:
    from pgqueue_admin.history.storage.layout import folder
    from pgqueue_admin.models import DataFile

    named = DataFile.objects.filter(dataset="history", parts__batch__seq_lo__gt=after).distinct()
    return [str(folder() / path) for path in named.values_list("path", flat=True)]


def by_spark(archive: Archive, paths: list[str]) -> None:
    from pgqueue_admin.history.spark.data_frames import of_files
    from pgqueue_admin.history.spark.transforms.rollups import rollups

    rollups(of_files(archive.driver._session(), [Path(path) for path in paths])).toArrow()


def installed(home: Path) -> Any:
    """The module, installed into a folder of its own; None if no registry provides it."""
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--target", str(home)]
    if not home.exists() and subprocess.run([*pip, DUCKDB]).returncode:
        return None
    sys.path.append(str(home))
    return importlib.import_module("duckdb")

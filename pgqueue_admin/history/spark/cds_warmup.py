"""A rehearsal batch that loads the classes which batches need, for the CDS archive."""

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pgqueue_admin.history.runtime import jvm_cds
from pgqueue_admin.history.spark import session as starting
from pgqueue_admin.history.spark.data_frames import of_files, of_queue
from pgqueue_admin.history.spark.schemas import RAW
from pgqueue_admin.history.spark.transforms.failures import failures
from pgqueue_admin.history.spark.transforms.history import history, ordered
from pgqueue_admin.history.spark.transforms.parse_headers import parsed
from pgqueue_admin.history.spark.transforms.retry_outcomes import retry_outcomes
from pgqueue_admin.history.spark.transforms.rollups import rollups
from pgqueue_admin.osproc.low_priority import go_last

_ONE = {"seq": 1, "result": "success", "headers": "{}", "is_twin": False, "ended_at": datetime(2026, 1, 1, tzinfo=UTC)}


def rehearse(session: Any, place: Path, uri: str = "", selects: list[str] | None = None) -> None:
    """Read ``selects``, or a made-up row; parse, write to ``place``, read back, count."""
    raw = of_queue(session, uri, selects) if selects else session.createDataFrame([_ONE], RAW)
    ordered(history(parsed(raw), "")).write.mode("overwrite").partitionBy("day").parquet(str(place))
    written = of_files(session, [place])
    for transform in (rollups, failures, retry_outcomes):
        transform(written).toArrow()


def main(scratch: Path, wanted: Path) -> None:
    go_last()
    written = wanted.with_suffix(".jsa.new")
    session = starting.session("local[2,4]", scratch, jvm_cds.made(written))
    rehearse(session, scratch / "rehearsal")
    gateway: Any = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()  # it writes the archive at exit
    shutil.rmtree(scratch / "rehearsal")
    written.rename(wanted)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

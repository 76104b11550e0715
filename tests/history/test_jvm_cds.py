"""Which class archive a start uses: its own Java's and Spark's, or none; and that a child creates one."""

import os
import shlex
import sys
from pathlib import Path
from subprocess import Popen

import pytest

from pgqueue_admin.history.runtime import jvm_cds


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a Java that has the base archive."""
    for name in ("bin/java", "lib/server/classes.jsa", "lib/server/libjvm.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def test_existing_class_archive_is_used(java: Path) -> None:
    archive = jvm_cds.place(java)
    assert archive is not None
    assert jvm_cds.used(java) == ""
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in jvm_cds.used(java)


def test_its_folder_may_have_spaces(java: Path) -> None:
    """Spark splits the options for Java as a shell would."""
    folder = java / "it's a b"
    folder.mkdir()
    archive = jvm_cds.place(folder)
    assert archive is not None
    archive.touch()
    assert shlex.split(jvm_cds.used(folder))[0] == f"-XX:SharedArchiveFile={archive}"


def test_class_archive_of_another_java_is_not_used(java: Path) -> None:
    archive = jvm_cds.place(java)
    assert archive is not None
    archive.touch()
    os.utime(java / "lib/server/libjvm.so", (1, 1))
    assert jvm_cds.place(java) != archive
    assert jvm_cds.used(java) == ""


def test_a_java_without_a_base_archive_has_none(java: Path) -> None:
    (java / "lib/server/classes.jsa").unlink()
    assert jvm_cds.place(java) is None
    assert jvm_cds.used(java) == ""


def test_a_driver_that_has_just_begun_makes_none(java: Path) -> None:
    making = jvm_cds.ClassArchiveBuild(java / "spark")
    making.run_once()
    making.close()
    assert not (java / "spark").exists()


@pytest.mark.spark
def test_a_child_makes_one_with_nothing_but_java_and_spark(classes: Path | None) -> None:
    """As the driver starts it: without a database, and without our models."""
    if classes is None:
        pytest.skip("this Java has no base archive, so it can make none")
    assert classes.stat().st_size > 50_000_000


def test_failed_class_archive_build_is_logged(java: Path, caplog: pytest.LogCaptureFixture) -> None:
    making = jvm_cds.ClassArchiveBuild(java / "spark")
    child = Popen([sys.executable, "-c", "raise SystemExit(1)"])
    making._wait_for(child)
    assert "class_archive.log" in caplog.text
    assert child.returncode == 1, "it was waited for, and is no zombie"

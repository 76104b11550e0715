"""Which archive of classes a start uses: that of its Java and Spark, or none. No Spark is started."""

import os
from pathlib import Path

import pytest

from pgqueue_admin.pipeline import class_archive


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a Java that has the base archive."""
    for name in ("bin/java", "lib/server/classes.jsa", "lib/server/libjvm.so"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def test_what_is_there_is_used(java: Path) -> None:
    archive = class_archive.place(java)
    assert archive is not None
    assert class_archive.used(java) == ""
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in class_archive.used(java)


def test_another_java_does_not_use_it(java: Path) -> None:
    archive = class_archive.place(java)
    assert archive is not None
    archive.touch()
    os.utime(java / "lib/server/libjvm.so", (1, 1))
    assert class_archive.place(java) != archive
    assert class_archive.used(java) == ""


def test_a_java_without_a_base_archive_has_none(java: Path) -> None:
    (java / "lib/server/classes.jsa").unlink()
    assert class_archive.place(java) is None
    assert class_archive.used(java) == ""


def test_a_driver_that_has_just_begun_makes_none(java: Path) -> None:
    making = class_archive.Making(java / "spark")
    making.turn()
    making.close()
    assert not (java / "spark").exists()

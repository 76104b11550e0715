"""Other accounts of this machine cannot read what `make run` keeps."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.embedded.os_account import unprivileged
from pgqueue_admin.osproc.private_dirs import close


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(var: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in (var, *var.iterdir())}


def test_folders_that_were_open_are_closed(tmp_path: Path) -> None:
    var = tmp_path / "var"
    for name in ("log", "mail", "history", "postgresql"):
        (var / name).mkdir(parents=True)
    (var / "log/Sales.1.log").touch()
    close(var)
    assert modes(var) == {"var": 0o711, "log": 0o700, "mail": 0o700, "history": 0o700, "postgresql": 0o700}


def test_shared_folders_stay_open_and_closed_ones_stay_closed(tmp_path: Path) -> None:
    var, elsewhere = tmp_path / "var", tmp_path / "elsewhere"
    for folder in (var, var / "history", elsewhere):
        folder.mkdir()
    (var / "mail").symlink_to(elsewhere)
    var.chmod(0o700)
    close(var, but={var / "history"})
    assert modes(var) == {"var": 0o700, "history": 0o755, "mail": 0o755}


def test_a_folder_that_is_not_there_is_made(tmp_path: Path) -> None:
    close(tmp_path / "a/var")
    assert modes(tmp_path / "a/var") == {"var": 0o711}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's PostgreSQL runs under another account")
def test_the_account_of_postgresql_passes_through_and_sees_nothing() -> None:
    with tempfile.TemporaryDirectory(prefix="pgqueue-closed-") as made:
        Path(made).chmod(0o755)
        var, account = Path(made) / "var", unprivileged()
        for name in ("log", "postgresql"):
            (var / name).mkdir(parents=True)
        account.own(var / "postgresql")
        close(var)
        assert account.may_enter(var / "postgresql")
        assert not account.may_enter(var / "log")

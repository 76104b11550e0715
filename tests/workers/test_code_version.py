"""The version of the handlers' code, from whatever source it was installed."""

import subprocess
from pathlib import Path

import pytest

from pgqueue_admin.workers.reporting import process_stats


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main"]
    said = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return said.stdout.strip()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one commit and a package in it."""
    folder = tmp_path / "shop"
    (folder / "shop").mkdir(parents=True)
    file = folder / "shop" / "handlers.py"
    file.touch()
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return file


def head(file: Path) -> str:
    return git(file.parent, "rev-parse", "HEAD")[:8]


def test_the_checked_out_commit(shop: Path) -> None:
    assert process_stats.commit(shop) == head(shop)


def test_a_packed_branch_a_detached_head_and_a_worktree(shop: Path, tmp_path: Path) -> None:
    git(shop.parent, "pack-refs", "--all")
    assert process_stats.commit(shop) == head(shop)
    git(shop.parent, "worktree", "add", "-q", str(tmp_path / "second"), "-b", "second")
    assert process_stats.commit(tmp_path / "second" / "shop" / "handlers.py") == head(shop)
    git(shop.parent, "checkout", "-q", "--detach")
    assert process_stats.commit(shop) == head(shop)


def test_nothing_is_checked_out(tmp_path: Path) -> None:
    assert process_stats.commit(tmp_path / "handlers.py") == ""


def test_an_installed_package_has_its_version() -> None:
    import django

    assert process_stats.of_modules(["django.db.models"]) == f"django {django.__version__}"


def test_the_deployment_knows_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGQUEUE_CODE_VERSION", "release-7")
    assert process_stats.of_modules(["django"]) == "release-7"

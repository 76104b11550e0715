"""The embedded PostgreSQL on real processes: it starts, keeps its data, recovers, and ends with us."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import cluster_location, ports
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.waiting import until

QUICK = {"fsync": "off"}


@pytest.fixture
def root() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-test-"))
    folder.chmod(0o755)
    yield folder / "postgresql"
    cluster_location.remove(folder / "postgresql")
    shutil.rmtree(folder)


@pytest.fixture
def server(root: Path) -> Iterator[PostgreSQL]:
    server = PostgreSQL(root, conf=QUICK)
    server.start()
    yield server
    server.stop()


def answers(server: PostgreSQL) -> bool:
    with postgresql().connect(server.dsn()) as session:
        return bool(session.value("select true"))


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_started_again_it_keeps_its_port_and_its_data(server: PostgreSQL) -> None:
    port = server.port
    with postgresql().connect(server.dsn()) as session:
        session.run("create table public.kept (x int)")
    server.stop()
    server.start()
    with postgresql().connect(server.dsn()) as session:
        assert session.value("select count(*) from public.kept") == 0
    assert server.port == port


def test_a_killed_postmaster_is_no_zombie_and_starts_again(server: PostgreSQL) -> None:
    pid = server.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: not server.running, what="the death is noticed")
    assert is_gone(pid)  # reaped
    server.start()
    assert answers(server)


def test_a_lock_file_that_names_another_process_is_no_hindrance(server: PostgreSQL) -> None:
    """After a container restart the old pid may belong to any process: here, to ours."""
    lock = server.home / "data/postmaster.pid"
    lines = lock.read_text().splitlines()
    server.stop()
    lock.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    server.start()
    assert answers(server)


def test_killed_with_its_parent_it_closes_the_cluster(root: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pgqueue_admin.embedded.postgresql import PostgreSQL\n"
        f"s = PostgreSQL(Path({str(root)!r}), conf={QUICK!r}); s.start(); print(s.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    until(lambda: is_gone(pid), what="the postmaster follows its parent")


def test_a_busy_port_of_last_time_is_left_to_who_has_it(root: Path) -> None:
    import socket

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        server = PostgreSQL(root, port=taken, conf=QUICK)
        server.start()
        assert server.port != taken
        server.stop()


def test_a_setting_that_postgresql_refuses_is_told_in_its_own_words(root: Path) -> None:
    with pytest.raises(ServerFailed, match="unrecognized configuration parameter"):
        PostgreSQL(root, conf={"no_such_setting": 1}).start()


def test_a_cluster_of_another_version_is_named_and_left_alone(server: PostgreSQL) -> None:
    server.stop()
    version = server.home / "data/PG_VERSION"
    version.write_text("9\n")
    with pytest.raises(ServerFailed, match=r"made by PostgreSQL 9.*make reset"):
        server.start()


def test_a_cluster_whose_programs_were_superusers_is_named_and_left_alone(server: PostgreSQL) -> None:
    """Made by an earlier version: the role that created a cluster cannot stop being a superuser."""
    server.stop()
    (server.home / "postgres.password").rename(server.home / "password")
    with pytest.raises(ServerFailed, match=r"superusers.*make reset"):
        server.start()
    assert not (server.home / "postgres.password").exists()


def test_a_binary_folder_without_binaries_is_named(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.setenv("PGQUEUE_PG_BIN", "/usr/share")
    with pytest.raises(ServerFailed, match="PGQUEUE_PG_BIN is /usr/share"):
        PostgreSQL(root).start()


def test_connections_from_elsewhere_and_without_the_password_are_refused(server: PostgreSQL) -> None:
    without = server.dsn().replace(server.dsn().split(":")[2].split("@")[0], "wrong")
    from pgqueue_admin.dialects import errors

    with pytest.raises(errors.DatabaseError):
        postgresql().connect(without)
    assert not ports.is_busy(server.port, "127.0.0.2")

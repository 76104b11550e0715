"""The database of compose.yaml: its script sets up an empty cluster, and the programs work with the result."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import binaries, cluster_location
from pgqueue_admin.embedded.postgresql import PostgreSQL

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy/postgres/role.sql"
PASSWORD = "of'compose"


@pytest.fixture
def server() -> Iterator[PostgreSQL]:
    """A server as the image's entrypoint leaves it for the script: the superuser is postgres."""
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-compose-"))
    folder.chmod(0o755)
    server = PostgreSQL(folder / "postgresql", conf={"fsync": "off"})
    server.start()
    yield server
    server.stop()
    cluster_location.remove(folder / "postgresql")
    shutil.rmtree(folder)


def run_script(server: PostgreSQL) -> None:
    """Run the script as the entrypoint does."""
    psql = [str(binaries.postgresql() / "psql"), "-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc"]
    given = {"POSTGRES_PASSWORD": PASSWORD, "PATH": os.environ["PATH"]}
    done = subprocess.run([*psql, "-d", server.dsn(), "-f", str(SCRIPT)], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def manage(command: str, dsn: str, var: Path) -> str:
    given = {"DATABASE_URL": dsn, "PGQUEUE_STATE_DIR": str(var), "PATH": os.environ["PATH"], "SECRET_KEY": "x" * 60}
    done = subprocess.run(
        [sys.executable, "manage.py", *command.split()], cwd=ROOT, env=given, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_programs_set_up_their_database_as_a_role_that_is_no_superuser(server: PostgreSQL, tmp_path: Path) -> None:
    superuser = server.dsn()
    run_script(server)
    dsn = f"postgresql://pgqueue:{PASSWORD.replace(chr(39), '%27')}@127.0.0.1:{server.port}/pgqueue"
    for command in ("migrate --noinput", "engine_schema"):  # as the setup service does
        manage(command, dsn, tmp_path)
    with postgresql().connect(dsn) as session:
        assert session.value("select not rolsuper from pg_catalog.pg_roles where rolname = current_user")
        assert session.value("select pg_catalog.to_regclass('pgqueue_console.pgqueue_queue') is not null")
    for other in (superuser, dsn.replace("pgqueue:", "postgres:", 1)):
        with pytest.raises(DatabaseError):
            postgresql().connect(other)

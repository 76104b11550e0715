"""The configuration and scripts of the image with the lease queue, run as its entrypoint runs them."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import cron_jobs, postgresql
from pgqueue_admin.embedded import binaries
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.lease.schedules.runner import GRACE
from tests import pg_cron
from tests.architecture.test_deploy import COMPOSE
from tests.own_server import own_server

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy/postgres"
IMAGE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
JOBS = (FOLDER / "cron-jobs.sql").read_text(encoding="utf-8")
TABLES = (FOLDER / "lease-queue.sql").read_text(encoding="utf-8")
PASSWORD = "of'compose"


def test_its_tables_are_those_of_engine_schema() -> None:
    """Generate the file with: manage.py engine_schema --print > deploy/postgres/lease-queue.sql"""
    assert schema.script() == TABLES


def test_the_script_makes_what_an_installation_makes(database: str, connection: Connection) -> None:
    psql(database, FOLDER / "lease-queue.sql")
    assert schema.install(connection) == (schema.VERSION, "nothing")
    made = "select version, installed_by = current_user from messages.engine_schema"
    assert connection.one(made) == (schema.VERSION, True)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The files that the Dockerfile copies, at their targets."""
    for source, target in re.findall(r"^COPY (\S+) (\S+)$", IMAGE, re.MULTILINE):
        to = tmp_path / target.lstrip("/")
        if source.endswith("/"):
            shutil.copytree(FOLDER / source, to, dirs_exist_ok=True)
        else:
            to = to / source if target.endswith("/") else to
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(FOLDER / source, to)
    return tmp_path


def configuration(has_cron: bool) -> dict[str, str]:
    """The settings that the image appends; without pg_cron where the server lacks it."""
    text = (FOLDER / "lease-queue.conf").read_text(encoding="utf-8")
    found = dict(re.findall(r"^([a-z_.]+) = (.*)$", text, re.MULTILINE))
    assert "cron" in found["shared_preload_libraries"]
    if not has_cron:
        found = {name: value for name, value in found.items() if "cron" not in f"{name} {value}"}
    return {name: value.strip("'") for name, value in found.items()}


class Image(NamedTuple):
    server: PostgreSQL
    has_cron: bool


@pytest.fixture(
    params=[False, pytest.param(True, marks=pytest.mark.pg_cron)], ids=["this server", "a server with pg_cron"]
)
def image(request: pytest.FixtureRequest) -> Iterator[Image]:
    """A server like the image's: a plain one of this run, or Debian's with pg_cron."""
    conf = {"fsync": "off", **configuration(request.param)}
    with own_server(conf, pg_cron.bin_folder() if request.param else None) as server:
        with postgresql().connect(server.dsn()) as session:  # the image trusts its own socket
            rules = Path(session.value("show hba_file"))
            rules.write_text(f"host all postgres 127.0.0.1/32 trust\n{rules.read_text()}")
            session.value("select pg_reload_conf()")
        yield Image(server, request.param)


def psql(dsn: str, script: Path) -> None:
    """Run a script as the entrypoint does."""
    command = [str(binaries.postgresql() / "psql"), "-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc"]
    given = {"POSTGRES_PASSWORD": PASSWORD, "PATH": os.environ["PATH"]}
    done = subprocess.run([*command, "-d", dsn, "-f", str(script)], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_role_of_the_programs_works_on_what_the_scripts_made(image: Image, files: Path) -> None:
    superuser = image.server.dsn()
    for script in sorted((files / "docker-entrypoint-initdb.d").glob("*.sql")):
        psql(superuser, script)
    dsn = f"postgresql://pgqueue:{quote(PASSWORD)}@127.0.0.1:{image.server.port}/pgqueue"
    queue = LeaseQueue(dsn, name="thumbs")
    queue.publish({"kind": "render"})
    assert queue.finish(queue.claim()[0], "failed")
    queue.close()
    with postgresql().connect(dsn, for_handlers=True) as session:
        assert session.value("show timezone") == "UTC"
        assert session.value("select tableowner from pg_tables where tablename = 'message_archive'") == "pgqueue"
        assert schema.install(session) == (schema.VERSION, "nothing")
        planned = cron_jobs.jobs(session, postgresql(), GRACE)
        assert cron_jobs.script(session, postgresql(), planned) == JOBS, "by: manage.py pg_cron print"
        has_cron = session.value("select exists (select from pg_extension where extname = 'pg_cron')")
        assert has_cron == image.has_cron
        if has_cron:
            names = session.all("select jobname from cron.job where username = 'pgqueue' order by jobid")
            assert [row.jobname for row in names] == [job.name for job in planned]


def test_cron_jobs_of_the_image_are_statements_that_run(
    engine_database: str, connect: Callable[..., Connection]
) -> None:
    """A replacement of pg_cron runs each job once."""
    session, queue = connect(engine_database), LeaseQueue(engine_database)
    session.run("""
        create schema cron;
        create function cron.schedule(name text, at text, command text) returns bigint language plpgsql as
            'begin execute command; return 1; end'
    """)
    queue.publish(1)
    queue.renew(queue.claim()[0], 1e-6)
    queue.close()
    psql(engine_database, FOLDER / "cron-jobs.sql")
    assert session.value("select result::text from messages.message_archive") == "lock_expired"


def test_the_profile_starts_it_and_the_examples_worker_beside_it() -> None:
    services = {name: each for name, each in COMPOSE["services"].items() if each.get("profiles") == ["lease"]}
    assert set(services) == {"lease-postgres", "lease-worker"}
    assert services["lease-postgres"]["build"] == {"context": "deploy/postgres"}
    python, program, dsn = services["lease-worker"]["command"]
    assert (python, (ROOT / program).exists()) == ("python", True)
    assert dsn == "postgresql:///pgqueue?host=lease-postgres&user=pgqueue"
    assert services["lease-worker"]["depends_on"] == {"lease-postgres": {"condition": "service_healthy"}}


def test_the_image_is_of_the_version_that_compose_has() -> None:
    (base,) = re.findall(r"^FROM (postgres:(\d+))$", IMAGE, re.MULTILINE)
    assert base[0] == COMPOSE["services"]["postgres"]["image"]
    assert f"postgresql-{base[1]}-cron" in IMAGE

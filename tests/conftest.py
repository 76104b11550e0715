"""The server of a test run and its databases: a template of each kind, cloned for each test that asks."""

import base64
import gc
import hashlib
import hmac
import os
import re
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests import large_queue as large
from tests import prepared_server, server_location, stale_clusters
from tests.databases import Databases
from tests.kept_server import kept_server
from tests.mariadb import MariaDB
from tests.mariadb import mariadb as started_mariadb
from tests.mssql import MSSQL
from tests.mssql import mssql as made_mssql
from tests.mssql import said as mssql_said
from tests.own_server import own_server
from tests.waiting import until

# The same examples in every run, however slow the machine is: what is found anew is no fault of the change under test.
hypothesis.register_profile("ours", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--only-asking", action="store_true", help="only tests that ask a PostgreSQL server of this run")


def pytest_configure() -> None:
    """Ctrl-C is heard by the tests and by what they start, also where whoever started them has it ignored (``&``)."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    hypothesis.load_profile("ours")
    gc.disable()  # nothing of what is collected goes before the end: to look through it costs a fifth of collecting it


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # pages of many small objects spend a tenth of their time on the default
    gc.enable()
    if session.config.getoption("loadgroup", False):
        torn = [
            item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid
        ]
        if torn:
            raise pytest.UsageError(f"pytest-xdist does not keep groups together under this pytest: {torn[0]}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where a run's servers were, and what it did not run: no test is skipped for it."""
    terminalreporter.write_line(f"PostgreSQL's files: {server_location.folder()}.")
    terminalreporter.write_line(mssql_said())
    terminalreporter.write_line("Oracle: held by text, not run: there is no driver for it here.")


@pytest.fixture(scope="session", autouse=True)
def var_folder() -> Iterator[Path]:
    folder = Path(os.environ["PGQUEUE_STATE_DIR"])
    folder.mkdir(exist_ok=True)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Iterator[PostgreSQL]:
    """PostgreSQL of this run: the wheel's, or PGQUEUE_PG_BIN's. It is not crash-safe (speed), and nobody
    vacuums or analyses a table behind a test's back."""
    stale_clusters.sweep()
    quick = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_wal_size": "4GB"}
    conf = {**quick, "autovacuum": "off"}
    if os.environ.get(prepared_server.VARIABLE):
        made = prepared_server.prepared_server(conf, lambda server: _has_templates(server, django_db_blocker))
    else:
        made = (kept_server if os.environ.get("PGQUEUE_TEST_KEEP") else own_server)(conf)
    with made as server:
        _is_quick_to_sign_in_to(server)
        yield server


def _has_templates(server: PostgreSQL, blocker: Any) -> None:
    with closing(Databases(server, blocker)) as databases:
        databases.prepare()


def _is_quick_to_sign_in_to(server: PostgreSQL) -> None:
    """One round of hashing for a password, not 4,096, which is half of what a session costs."""
    with postgresql().connect(server.dsn()) as admin:
        if admin.raw.info.server_version >= 160_000:  # for roles that tests make, too
            admin.run("alter system set scram_iterations = 1")
            admin.value("select pg_reload_conf()")
        admin.run(f"alter role {admin.raw.info.user} password '{_secret(admin.raw.info.password)}'")


def _secret(password: str) -> str:
    """What any server from 10 on keeps of it: RFC 5803, with one round, which those before 16 make for nobody."""
    salt = b"of the tests"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1)
    client, server = (hmac.digest(salted, f"{which} Key".encode(), "sha256") for which in ("Client", "Server"))
    kept, server, salt = map(base64.b64encode, (hashlib.sha256(client).digest(), server, salt))
    return f"SCRAM-SHA-256$1:{salt.decode()}${kept.decode()}:{server.decode()}"


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """MariaDB of this run; a test that asks for it fails where it is not installed."""
    with started_mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def mssql() -> Iterator[MSSQL]:
    """SQL Server of this run, where somebody named one; only tests that exist then ask for it."""
    with made_mssql() as server:
        yield server


@pytest.fixture(scope="session")
def databases(server: PostgreSQL, django_db_blocker: Any) -> Iterator[Databases]:
    databases = Databases(server, django_db_blocker)
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def large_queue(databases: Databases) -> Iterator[large.Large]:
    """A million rows behind 200,000 dead ones; look only, or undo what you do: others look too."""
    with large.queue(databases) as made:
        yield made


@pytest.fixture
def database(databases: Databases) -> Iterator[str]:
    """A DSN: a database with nothing in it."""
    with databases.clone("empty") as dsn:
        yield dsn


@pytest.fixture
def engine_database(databases: Databases) -> Iterator[str]:
    """A DSN: a database with the engine's tables."""
    with databases.clone("engine") as dsn:
        yield dsn


@pytest.fixture
def recorded_database(databases: Databases) -> Iterator[str]:
    """A DSN: the recorded NServiceBus database, times as recorded, and the engine's tables."""
    with databases.clone("recorded") as dsn:
        yield dsn


@pytest.fixture
def console_database(databases: Databases) -> Iterator[str]:
    """A DSN that Django's ``default`` and ``queues`` both point to: migrations and engine tables; commits are real."""
    with databases.clone("console") as dsn, databases.as_django(dsn):
        yield dsn


@pytest.fixture
def recorded_console(databases: Databases) -> Iterator[str]:
    """As ``console_database``, with the recorded queues in it, of Sales and audit a part."""
    with databases.clone("recorded_console") as dsn, databases.as_django(dsn):
        yield dsn


@pytest.fixture
def archived_console(databases: Databases) -> Iterator[str]:
    """As ``recorded_console``, with the recorded error queue emptied into the archive."""
    with databases.clone("archived_console") as dsn, databases.as_django(dsn):
        yield dsn


@pytest.fixture
def encoded(request: pytest.FixtureRequest, database: str, connect: Callable[[str], Connection]) -> Iterator[str]:
    """A DSN: of an empty database in another encoding, which is the fixture's parameter."""
    name, admin = f"encoded_{request.param.lower()}", connect(database)
    admin.run(f"create database {name} encoding '{request.param}' locale 'C' template template0")
    yield f"{database.rpartition('/')[0]}/{name}"
    admin.run(f"drop database {name} with (force)")


@pytest.fixture
def connect() -> Iterator[Callable[[str], Connection]]:
    """Open sessions that are closed when the test ends: ``connect(dsn)``. They find the tables of ``public``."""
    opened: list[Connection] = []

    def connect(dsn: str, **options: Any) -> Connection:
        opened.append(postgresql().connect(dsn, **{"for_handlers": True, **options}))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(database: str, connect: Callable[[str], Connection]) -> Connection:
    """A session on an empty database."""
    return connect(database)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``make test`` needs no MariaDB: what asks for one, by fixture or parameter, is a step of its own.

    What a module makes once for its tests is made in one process of a parallel run.
    """
    if config.getoption("--only-asking"):
        config.hook.pytest_deselected(items=[item for item in items if not _asks(item)])
        items[:] = filter(_asks, items)
    for item in items:
        if "mariadb" in getattr(item, "fixturenames", ()) or "mariadb" in item.name.lower():
            item.add_marker(pytest.mark.mariadb)
        if shared := _shared(item):
            names = [
                item.path.parent.name,
                item.path.name,
                *(re.sub(r"\W", "_", each) for each in _values(item, shared)),
            ]
            item.add_marker(pytest.mark.xdist_group("/".join(names)))


def _shared(item: pytest.Item) -> set[str]:
    """Fixtures of it that are made once for its module."""
    info = getattr(item, "_fixtureinfo", None)
    found = info.name2fixturedefs.items() if info else ()
    return {name for name, fixtures in found if any(each.scope == "module" for each in fixtures)}


def _values(item: pytest.Item, shared: set[str]) -> list[str]:
    """What they are made of, where they are made of several things: others need not wait for those."""
    given = getattr(item, "callspec", None)
    return [str(given.params[name]) for name in sorted(shared) if name in given.params] if given else []


def _asks(item: pytest.Item) -> bool:
    return "server" in getattr(item, "fixturenames", ()) or item.get_closest_marker("pg_cron") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Half a character in a captured log would end a parallel run: reports travel between processes as UTF-8."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture
def history(tmp_path: Path, settings: Any) -> Path:
    """Where files of history go in this test."""
    settings.PGQUEUE = {**settings.PGQUEUE, "HISTORY_DIR": tmp_path / "history"}
    return tmp_path / "history"


@pytest.fixture
def one_day() -> None:
    """For tests that reckon from today: none begins where today (UTC) is nearly over, it waits for tomorrow."""
    longest = timedelta(seconds=45)  # of such a test
    until(lambda: (now := datetime.now(UTC)).date() == (now + longest).date(), what="midnight has passed")


@pytest.fixture
def lease_schema(console_database: str, settings: Any) -> None:
    """The schema of the lease queue is watched, too."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SCHEMAS": ["public", "messages"]}

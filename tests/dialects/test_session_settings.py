"""Settings of every session at its start, whoever opens it and whatever its database's defaults."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from urllib.parse import quote

import psycopg
import pytest
from django.db import connections

from pgqueue_admin.config import env
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.sources import read_sessions
from pgqueue_admin.live import listener
from pgqueue_admin.transport.client import Client
from tests.console.sampled import elsewhere
from tests.hostile.proxy import Proxy
from tests.pooler import Pooler
from tests.waiting import until

HEARD = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
Show = Callable[[str], str]
Opens = Callable[[str], Iterator[Show]]


def own(dsn: str) -> Iterator[Show]:
    with postgresql().connect(dsn) as session:
        yield lambda name: str(session.value(f"show {name}"))


def of_a_pool(dsn: str) -> Iterator[Show]:
    pool = postgresql().pool(dsn, read_only=True, statement_timeout=5, lock_timeout=1)
    with pool.connection() as session:
        yield lambda name: str(session.value(f"show {name}"))
    pool.close()


def of_django(dsn: str) -> Iterator[Show]:
    yield from shown("default", env.for_console(env.database(dsn, "DATABASE_URL")))


def for_looking(dsn: str) -> Iterator[Show]:
    yield from shown("queues", env.for_looking(env.database(dsn, "QUEUES_URL")))


def shown(alias: str, entry: dict[str, object]) -> Iterator[Show]:
    def show(name: str) -> str:
        with connections[alias].cursor() as cursor:
            cursor.execute(f"show {name}")
            return str(cursor.fetchone()[0])

    with elsewhere(alias, **entry):
        yield show


@pytest.fixture(params=[own, of_a_pool, of_django, for_looking], ids=lambda opens: opens.__name__)
def opens(request: pytest.FixtureRequest, console_database: str) -> Iterator[Callable[[str], Show]]:
    """``opens(dsn)``: opens a session of each kind; returns a function that shows a setting."""
    opened: list[Iterator[Show]] = []

    def open_one(dsn: str) -> Show:
        opened.append(request.param(dsn))
        return next(opened[-1])

    yield open_one
    for each in opened:
        list(each)


def test_a_server_notices_within_half_a_minute_that_nobody_is_there(
    opens: Callable[[str], Show], console_database: str
) -> None:
    """Otherwise it keeps the session of a machine without power, and all its locks, for two hours."""
    show = opens(console_database)
    assert {name: show(name) for name in HEARD} == HEARD


def test_server_keepalive_options_of_the_url_apply(opens: Callable[[str], Show], console_database: str) -> None:
    show = opens(f"{console_database}?options={quote('-c tcp_keepalives_idle=77 -c work_mem=7MB')}")
    assert [show(name) for name in ("tcp_keepalives_idle", "tcp_keepalives_count", "work_mem")] == ["77", "3", "7MB"]


def test_transactions_are_isolated_as_our_statements_expect(
    opens: Callable[[str], Show], console_database: str, connect: Callable[..., Connection]
) -> None:
    """The database's default is another level, at which parallel receives fail with conflicts."""
    name = console_database.rpartition("/")[2]
    connect(console_database).run(f"alter database {name} set default_transaction_isolation = 'serializable'")
    said = quote("-c default_transaction_isolation=serializable")
    for dsn in (console_database, f"{console_database}?options={said}"):
        assert opens(dsn)("transaction_isolation") == "read committed"


def of_sparks_reader(dsn: str) -> Iterator[Show]:
    with psycopg.connect(read_sessions.for_looking(dsn)) as session:
        yield lambda name: str(session.execute(f"show {name}").fetchone()[0])  # type: ignore[index]


def of_the_engine(dsn: str) -> Iterator[Show]:
    with Client("Sales", dsn).opening.long() as session:
        yield lambda name: str(session.value(f"show {name}"))


def of_the_engines_own(dsn: str) -> Iterator[Show]:
    with Client("Sales", dsn).opening.ours() as session:
        yield lambda name: str(session.value(f"show {name}"))


def of_handlers(dsn: str) -> Iterator[Show]:
    with Client("Sales", dsn).connect() as session:
        yield lambda name: str(session.value(f"show {name}"))


def of_a_listener(dsn: str) -> Iterator[Show]:
    with asyncio.Runner() as loop:
        session = loop.run(listener.opened(dsn))

        async def show(name: str) -> str:
            return str((await (await session.execute(f"show {name}")).fetchone())[0])  # type: ignore[index]

        yield lambda name: loop.run(show(name))
        loop.run(session.close())


@pytest.mark.parametrize(
    "kind",
    [own, of_a_pool, for_looking, of_sparks_reader, of_the_engine, of_a_listener],
    ids=lambda kind: kind.__name__,
)
def test_a_session_in_which_only_we_ask_finds_names_in_the_catalog_alone(
    kind: Opens, console_database: str, connect: Callable[..., Connection]
) -> None:
    """Whatever path the database and the address set; its application name shows the owner."""
    name = console_database.rpartition("/")[2]
    connect(console_database).run(f"alter database {name} set search_path = public, pg_catalog")
    for dsn in (console_database, f"{console_database}?options={quote('-c search_path=public,pg_catalog')}"):
        opened = kind(dsn)
        show = next(opened)
        assert [show("search_path").replace(" ", "") for _ in range(2)] == ["pg_catalog,pg_temp"] * 2
        assert show("application_name").startswith("pgqueue")
        list(opened)


LOOKS = {
    **{"row_security": "off", "default_transaction_read_only": "on", "constraint_exclusion": "partition"},
    "jit": "off",
    **{"statement_timeout": "5s", "lock_timeout": "1s"},
}
ALL = {"transaction_isolation": "read committed", "TimeZone": "UTC", "client_encoding": "UTF8", **HEARD}
IN_OUR_PATH = {"search_path": "pg_catalog,pg_temp", "work_mem": "7MB", **ALL}


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (own, IN_OUR_PATH),
        (of_a_pool, {**IN_OUR_PATH, **LOOKS, "idle_in_transaction_session_timeout": "5s"}),
        (for_looking, {**IN_OUR_PATH, **LOOKS}),
        (of_django, {**ALL, "search_path": "pg_catalog,pgqueue_console,pg_temp", "work_mem": "7MB"}),
        (of_the_engine, IN_OUR_PATH),
        (of_the_engines_own, {**IN_OUR_PATH, "statement_timeout": "25s"}),
        (of_handlers, {**ALL, "search_path": "shop,public", "work_mem": "7MB"}),
        (of_a_listener, IN_OUR_PATH),
    ],
    ids=lambda said: getattr(said, "__name__", "wanted"),
)
def test_settings_apply_behind_a_pooler_that_drops_start_options(
    kind: Opens, wanted: dict[str, str], console_database: str, connect: Callable[..., Connection]
) -> None:
    """As one with ``ignore_startup_parameters = options``. Options in the address apply there too."""
    name = console_database.rpartition("/")[2]
    for setting in ("search_path = public", "default_transaction_isolation = 'serializable'"):
        connect(console_database).run(f"alter database {name} set {setting}")
    pooler = Pooler(console_database, size=4, mode="session")
    said = r"-c work_mem=7MB --array-nulls=on -c log_disconnections=1 -c search_path=shop,\ public"
    opened = kind(f"{pooler.dsn}?options={quote(said)}")
    show = next(opened)
    try:
        assert {name: show(name).replace(", ", ",") for name in wanted} == wanted
        assert show("application_name").startswith("pgqueue")
    finally:
        list(opened)
        pooler.close()


def test_a_session_of_handlers_finds_what_its_address_says(
    console_database: str, connect: Callable[..., Connection]
) -> None:
    dsn = f"{console_database}?options={quote('-c search_path=shop,public')}"
    with Client("Sales", dsn).connect() as session:
        assert session.value("show search_path") == "shop,public"


def test_a_pooler_that_lends_nothing_is_down(console_database: str, connect: Callable[..., Connection]) -> None:
    """It accepts every client; the server's limits do not apply to clients that never reached it."""
    pooler = Proxy(console_database)
    pool = postgresql().pool(pooler.dsn, statement_timeout=5)
    with pooler.holding():
        for opened in (lambda: connect(pooler.dsn, fail_fast=True), lambda: pool.connection().__enter__()):
            with pytest.raises(DatabaseDown, match="a pooler may have none left"):
                opened()

    def lends() -> bool:
        with suppress(DatabaseDown), pool.connection() as lent:
            return bool(lent.value("select true"))
        return False

    until(lends, what="it has one again")
    pool.close()

"""manage.py outbox_script: approved text in each dialect, executed in two of them (docs/reference/outbox.md)."""

import logging
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import sqlglot
from django.core.management import CommandError, call_command
from sqlglot import exp

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.mysql import connect_options
from pgqueue_admin.dialects.oracle.dialect import Oracle
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.outbox.script import DIALECTS, WHATS, OutboxScript
from pgqueue_admin.outbox.upkeep import BATCH
from tests import pg_cron
from tests.mariadb import MariaDB
from tests.waiting import until

APPROVED = Path(__file__).with_name("approved")
PARSER = {"postgresql": "postgres", "mysql": "mysql", "sqlserver": "tsql", "oracle": "oracle"}
RUN = "run for real below"
# Syntax that sqlglot does not know, with the reason why that is no loss.
UNPARSED = {
    ("postgresql", "create"): f"a DO block; {RUN}",
    ("postgresql", "migrate"): f"a DO block; {RUN}",
    ("postgresql", "indexes"): f"PL/pgSQL; {RUN}",
    ("mysql", "create"): f"PREPARE; {RUN}",
    ("mysql", "indexes"): f"PREPARE; {RUN}",
    ("mysql", "migrate"): f"PREPARE; {RUN}",
    ("mysql", "cleanup"): f"the body of an event, and the client's DELIMITER; {RUN}",
    ("sqlserver", "migrate"): "ADD … WITH VALUES, as in created_at",
    ("sqlserver", "created_at"): "ADD … WITH VALUES, which fills the rows that are there",
    ("sqlserver", "cleanup"): "THROW, and procedures of Agent: text only",
    ("oracle", "create"): "PL/SQL: text only; the statements in it are parsed alone",
    ("oracle", "indexes"): "PL/SQL: text only; the statements in it are parsed alone",
    ("oracle", "migrate"): "PL/SQL: text only; the statements in it are parsed alone",
    ("oracle", "cleanup"): "PL/SQL: text only; the statements in it are parsed alone",
    ("oracle", "batches"): "PL/SQL: text only; the statements in it are parsed alone",
}
# How an endpoint and the job state the retention of records; and the parts of the job's delete.
PURGES = [
    (
        SQLServer(),
        "dateadd(day, -%(keep_days)s, dateadd(second, -%(keep)s, getutcdate()))",
        "dateadd(day, -7, getutcdate())",
        ["purge"],
    ),
    (Oracle(), "numtodsinterval(:keep / 1000000, 'second')", "numtodsinterval(7, 'day')", ["due", "purge"]),
]
HINT = re.compile(
    r"\bwith \(([^)]*)\)|\boption \(([^)]*)\)|/\*\+(.*?)\*/|\b(?:force|use|ignore) index\b", re.IGNORECASE
)
# Outbox sheet 8: how the original's own cleaner deletes on SQL Server.
HINTS = {"with (rowlock, readpast)", "option (maxdop 1)"}
HOSTILE = "a\"b'c;d--e/*f*/$$g$outbox$%s\\h{i}"  # 32 characters, including every quote character
ORIGINALS = """create table {table} ("MessageId" varchar(200) not null primary key,
    "Dispatched" boolean not null default false, "DispatchedAt" timestamp, "PersistenceVersion" varchar(23),
    "Operations" jsonb not null);
    create index if not exists "Index_DispatchedAt" on {table} ("DispatchedAt");
    create index if not exists "Index_Dispatched" on {table} ("Dispatched")"""
ORIGINALS_OF_MYSQL = """create table {table} (MessageId nvarchar(200) not null, Dispatched bit not null default 0,
    DispatchedAt datetime, PersistenceVersion varchar(23) not null, Operations json not null,
    primary key (MessageId)) default charset=ascii"""
SHAPE = """select a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
    pg_get_expr(d.adbin, d.adrelid) from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid
    and d.adnum = a.attnum where a.attrelid = %(table)s::regclass and a.attnum > 0
    union all select 'index', pg_get_indexdef(indexrelid), true, '' from pg_index where indrelid = %(table)s::regclass
    order by 1, 2"""


def script(dialect: Any, what: Any, endpoint: str = "Shop.Web", **given: Any) -> str:
    return OutboxScript(dialect, endpoint, **given).text(what)


WITH_DECISIONS = ("postgresql", "mysql")
SCRIPTS = [
    (dialect, what) for dialect in DIALECTS for what in WHATS if what != "decisions" or dialect in WITH_DECISIONS
]


@pytest.mark.parametrize(("dialect", "what"), SCRIPTS)
def test_script_equals_the_approved_text(dialect: str, what: str) -> None:
    """A person has read each line: review it again before approving a change."""
    printed = StringIO()
    call_command("outbox_script", dialect=dialect, endpoint="Shop.Web", what=what, stdout=printed)
    assert printed.getvalue() == (APPROVED / f"{dialect}_{what}.sql").read_text()


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        ("postgresql", "interval ''365 days''"),
        ("mysql", "interval 365 day"),
        ("sqlserver", "dateadd(day, -365, getutcdate())"),
        ("oracle", "numtodsinterval(365, ''day'')"),
    ],
)
def test_how_long_the_job_keeps_a_record_can_be_said(dialect: str, said: str) -> None:
    """Nothing else of the script changes."""
    printed = StringIO()
    call_command("outbox_script", dialect=dialect, endpoint="Shop.Web", what="cleanup", keep=365, stdout=printed)
    assert said in printed.getvalue()
    assert printed.getvalue().replace("365", "7") == (APPROVED / f"{dialect}_cleanup.sql").read_text()


@pytest.mark.parametrize("keep", [0, -1, 3651])
def test_longer_or_shorter_than_an_endpoint_keeps_it_is_refused(keep: int) -> None:
    with pytest.raises(CommandError, match=f"records are kept for 1 to 3,650 days, not for {keep}"):
        call_command("outbox_script", dialect="mysql", endpoint="Shop.Web", what="cleanup", keep=keep)


@pytest.mark.parametrize("dialect", ["sqlserver", "oracle"])
def test_dialect_without_two_phase_commit_has_no_decisions_script(dialect: str) -> None:
    with pytest.raises(CommandError, match="There is no script: the outbox there takes part in no two-phase commit"):
        call_command("outbox_script", dialect=dialect, endpoint="Shop.Web", what="decisions")


EACH = [(dialect, name) for dialect in DIALECTS for name in OutboxScript(dialect, "Shop.Web").statements]


@pytest.mark.parametrize(("dialect", "name"), EACH)
def test_each_statement_is_one_of_its_dialect(dialect: Any, name: str) -> None:
    """By a parser of that dialect, except syntax it does not know."""
    text = without_hints(OutboxScript(dialect, "Shop.Web").statement(name))
    assert is_parsed(text, PARSER[dialect]) is ((dialect, name) not in UNPARSED)


def without_hints(text: str) -> str:
    """Without two SQL Server clauses that the parser does not know, for a heap and for a batch."""
    return HINT.sub("", text).replace(" nonclustered", "").replace(" top (4000)", "")


def is_parsed(text: str, dialect: str) -> bool:
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of unknown syntax
    try:
        return not any(isinstance(each, exp.Command) for each in sqlglot.parse(text, read=dialect))
    except sqlglot.errors.SqlglotError:
        return False


@pytest.mark.parametrize(("dialect", "name"), EACH)
def test_there_is_no_hint_but_the_originals(dialect: Any, name: str) -> None:
    found = {match[0].lower() for match in HINT.finditer(OutboxScript(dialect, "Shop.Web").statement(name))}
    assert found <= (HINTS if dialect == "sqlserver" else set())


def test_a_hint_outside_the_sheet_would_be_found() -> None:
    for hint in ("with (nolock)", "option (recompile)", "/*+ parallel */", "force index (a)"):
        found = HINT.search(f"delete from t {hint}")
        assert found
        assert found[0] not in HINTS


@pytest.mark.parametrize(("dialect", "keep", "a_week", "parts"), PURGES, ids=["sqlserver", "oracle"])
def test_the_databases_job_deletes_as_an_endpoint_does(dialect: Any, keep: str, a_week: str, parts: list[str]) -> None:
    """Same records, same skipped locks, same batch size; only an endpoint gets its retention as a setting."""
    address = dialect.outbox_address("Shop.Web", dialect.default_schema)
    deleting = words(dialect.outbox.purge(table=address, most=BATCH).replace(keep, a_week))
    job = OutboxScript(dialect.name, "Shop.Web")
    assert all(words(job.statement(part)) in deleting for part in parts)
    assert str(BATCH) in job.statement("batches")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("dialect", "endpoint", "given", "said"),
    [
        ("postgresql", "A" * 20, {}, "21 characters, and 20 are allowed"),
        ("postgresql", "x", {"prefix": "漢" * 15}, "has 55 bytes"),
        ("oracle", "A" * 25, {}, "26 characters, and 25 are allowed"),
        ("oracle", "Größe", {}, "is not ASCII"),
        ("oracle", 'a"b', {}, "holds"),
        ("mysql", "A" * 54, {}, "has 65 characters"),
        ("mysql", "sales😀", {}, "a character that names cannot have"),
        ("sqlserver", "A" * 120, {}, "has 131 characters"),
        ("sqlserver", "a$(b)", {}, "holds $("),
        ("sqlserver", "x", {"schema": "s" * 129}, "has 129 characters"),
        *((dialect, "a]b", {}, "holds ]") for dialect in DIALECTS),
        *((dialect, "a`b", {}, "holds `") for dialect in DIALECTS),
        *((dialect, "a\nGO\n", {}, "control character") for dialect in DIALECTS),
        *((dialect, "x", {"schema": "s\0"}, "control character") for dialect in DIALECTS),
    ],
)
def test_a_name_that_cannot_be_one_is_refused(dialect: Any, endpoint: str, given: Any, said: str) -> None:
    with pytest.raises(AddressUnreadable, match=re.escape(said)):
        script(dialect, "create", endpoint, **given)
    with pytest.raises(CommandError, match="There is no script"):
        call_command("outbox_script", dialect=dialect, endpoint=endpoint, **given)


def test_an_event_whose_name_would_be_too_long_is_refused() -> None:
    assert script("mysql", "create", "A" * 50)
    with pytest.raises(AddressUnreadable, match="_cleanup"):
        script("mysql", "cleanup", "A" * 50)


@pytest.mark.parametrize(
    ("dialect", "prefix", "schema", "table"),
    [
        ("sqlserver", HOSTILE, "s]; drop table x; --'\"", f"{HOSTILE}OutboxData"),
        ("oracle", "a'b;d--e/*f*/", "s'; drop table x; --", "A'B;D--E/*F*/OD"),
    ],
)
def test_a_hostile_name_stays_one_name(dialect: Any, prefix: str, schema: str, table: str) -> None:
    """Without a server of that kind, its parser must find the name again and nothing else in its place."""
    made = OutboxScript(dialect, "x", schema, prefix)
    first = "table" if dialect == "oracle" else "index_dispatched"
    for name in (first, "purge", "created_at" if dialect == "oracle" else "index_dispatched_at"):
        (tree,) = sqlglot.parse(without_hints(made.statement(name)), read=PARSER[dialect])
        assert tree
        found = tree.find(exp.Table)
        assert found
        assert (found.name, found.db) == (table, schema)


def run(connection: Connection, text: str) -> None:
    connection.raw.execute(text.encode())


@pytest.mark.parametrize("prefix", ["Shop_Web_", HOSTILE[:20], HOSTILE[13:]], ids=["plain", "hostile", "more hostile"])
@pytest.mark.parametrize("schema", ["public", "s\"; drop schema public cascade; --'"], ids=["public", "hostile"])
def test_postgresql_makes_the_table_that_an_endpoint_makes(connection: Connection, schema: str, prefix: str) -> None:
    """Run twice, with all indexes, in a schema where another table already uses their names."""
    connection.run(f"""create schema if not exists "{schema.replace('"', '""')}" """)
    run(connection, script("postgresql", "create", schema=schema, prefix="Other_"))
    for _ in range(2):
        run(connection, script("postgresql", "create", schema=schema, prefix=prefix))
    address = Address(schema, f"{prefix}OutboxData")
    store, named = postgresql().outbox_store(address), {"table": postgresql().canonical(address)}
    made = connection.all(SHAPE, named)
    assert list(store.faults(connection)) == []
    connection.raw.execute(f"drop table {named['table']}".encode())
    store.create(connection)
    assert connection.all(SHAPE, named) == made
    assert len(made) == 9


@pytest.mark.parametrize("prefix", ["Shop_Web_", HOSTILE[:20]], ids=["plain", "hostile"])
def test_postgresql_makes_the_table_of_decisions_that_an_endpoint_makes(connection: Connection, prefix: str) -> None:
    for _ in range(2):
        run(connection, script("postgresql", "decisions", prefix=prefix))
    address = Address("public", f"{prefix}OutboxData_Decision")
    store, named = postgresql().decision_store(address), {"table": postgresql().canonical(address)}
    assert list(store.faults(connection)) == []
    made = connection.all(SHAPE, named)
    connection.raw.execute(f"drop table {named['table']}".encode())
    store.create(connection)
    assert connection.all(SHAPE, named) == made


@pytest.mark.parametrize("first", ["create", "migrate"])
def test_postgresql_gives_an_originals_table_what_it_lacks(connection: Connection, first: str) -> None:
    """The second table of a schema has no index but its key; neither has the time of writing."""
    for name in ("Billing", "Sales"):
        connection.raw.execute(ORIGINALS.format(table=f'"{name}_OutboxData"').encode())
        connection.run(f"""insert into "{name}_OutboxData" ("MessageId", "Operations") values ('one', '[]')""")
        for what in (first, "migrate", "migrate"):
            run(connection, script("postgresql", what, name))
    for name in ("Billing", "Sales"):
        indexed = connection.value("select count(*) from pg_indexes where tablename = %s", [f"{name}_OutboxData"])
        assert indexed == 3
        assert connection.value(f'select "CreatedAt" <= now() from "{name}_OutboxData"') is True


def test_postgresql_waits_for_nobody_for_long(connection: Connection, connect: Any, database: str) -> None:
    """A migration queued for its lock would block every worker meanwhile."""
    run(connection, script("postgresql", "create"))
    text = script("postgresql", "migrate")
    assert "lock_timeout = '5s'" in text
    holder = connect(database)
    with holder.transaction():
        holder.all('select * from "Shop_Web_OutboxData" for update')
        with pytest.raises(psycopg.errors.LockNotAvailable):
            run(connection, text.replace("'5s'", "'1ms'"))


def test_postgresqls_job_deletes_what_is_over_and_nothing_else(connection: Connection) -> None:
    """Without pg_cron: a function in its place keeps its arguments."""
    run(connection, script("postgresql", "create"))
    connection.raw.execute(
        b"""create schema cron; create table cron.job (name text primary key, plan text, command text);
        create function cron.schedule(text, text, text) returns void language sql as
        $$ insert into cron.job values ($1, $2, $3) on conflict (name) do update set command = $3 $$"""
    )
    for _ in range(2):
        run(connection, script("postgresql", "cleanup"))
    ((name, plan, command),) = connection.all("select * from cron.job")
    assert (name, plan) == ('"public"."Shop_Web_OutboxData" clean-up', "* * * * *")
    connection.run(
        """insert into "Shop_Web_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
        select i, i > 1, case when i > 1 then now() at time zone 'utc' - i * interval '1 day' end, '[]'
        from generate_series(1, 9) i"""
    )
    connection.run("set timezone = 'Pacific/Apia'")
    run(connection, command)
    left = connection.all('select "MessageId" from "Shop_Web_OutboxData" order by 1')
    assert [int(name) for (name,) in left] == [1, 2, 3, 4, 5, 6]


@pytest.mark.pg_cron
def test_pg_cron_runs_the_job() -> None:
    """On a server with pg_cron, at the next full minute."""
    with pg_cron.server() as server:
        with postgresql().connect(server.dsn()) as admin:
            admin.run(f"create database {pg_cron.HOME}")
        with postgresql().connect(server.dsn(pg_cron.HOME), for_handlers=True) as session:
            session.run("create extension pg_cron")
            run(session, script("postgresql", "create"))
            session.run(
                """insert into "Shop_Web_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
                select i, true, now() at time zone 'utc' - i * interval '5 days', '[]' from generate_series(1, 2) i"""
            )
            run(session, script("postgresql", "cleanup"))
            until(lambda: session.value('select count(*) from "Shop_Web_OutboxData"') == 1, seconds=90)


MARIADB_NAMES = ["Shop_Web_", HOSTILE]
SHAPE_OF_MYSQL = """select column_name, column_type, is_nullable, column_default, character_set_name
    from information_schema.columns where table_schema = '{0}' and table_name like '%OutboxData' union all
    select index_name, column_name, seq_in_index, non_unique, '' from information_schema.statistics
    where table_schema = '{0}' order by 1, 2"""


@pytest.fixture
def shop(mariadb: MariaDB) -> Iterator[str]:
    """The name of an empty database."""
    with mariadb.database() as name:
        yield name


@pytest.mark.parametrize("prefix", MARIADB_NAMES)
@pytest.mark.parametrize("schema", [False, True])
def test_mariadb_runs_creation_twice(mariadb: MariaDB, shop: str, prefix: str, schema: bool) -> None:
    given = {"prefix": prefix, "schema": shop if schema else ""}
    mariadb.run(script("mysql", "create", **given), shop)
    made = mariadb.run(SHAPE_OF_MYSQL.format(shop)).splitlines()
    for what in ("create", "migrate", "migrate"):
        mariadb.run(script("mysql", what, **given), shop)
    assert mariadb.run(SHAPE_OF_MYSQL.format(shop)).splitlines() == made
    assert [line.split("\t")[:3] for line in made if "\t1\t" in line] == [
        ["Index_Dispatched", "Dispatched", "1"],
        ["Index_DispatchedAt", "DispatchedAt", "1"],
        ["PRIMARY", "MessageId", "1"],
    ]


@pytest.mark.parametrize("prefix", MARIADB_NAMES)
def test_mariadb_makes_the_table_of_decisions_that_an_endpoint_makes(mariadb: MariaDB, shop: str, prefix: str) -> None:
    for _ in range(2):
        mariadb.run(script("mysql", "decisions", prefix=prefix), shop)
    shape = f"select column_name, column_type from information_schema.columns where table_schema = '{shop}' order by 1"
    assert mariadb.run(shape, shop).split() == [
        "Databases", "text", "DecidedAt", "timestamp(6)", "Id", "varchar(32)"
    ]  # fmt: skip


@pytest.mark.parametrize("prefix", MARIADB_NAMES)
def test_mariadb_gives_an_originals_table_what_it_lacks(mariadb: MariaDB, shop: str, prefix: str) -> None:
    table = f"`{prefix}OutboxData`"
    mariadb.run(ORIGINALS_OF_MYSQL.format(table=table), shop)
    mariadb.run(f"insert into {table} (MessageId, PersistenceVersion, Operations) values ('one', '9', '[]')", shop)
    for what in ("migrate", "migrate", "create"):
        mariadb.run(script("mysql", what, prefix=prefix), shop)
    made = mariadb.run(SHAPE_OF_MYSQL.format(shop)).splitlines()
    assert [line.split("\t")[0] for line in made] == [
        "CreatedAt", "Dispatched", "DispatchedAt", "Index_Dispatched", "Index_DispatchedAt", "MessageId", "Operations",
        "PersistenceVersion", "PRIMARY",
    ]  # fmt: skip
    assert mariadb.run(f"select CreatedAt <= now(6) from {table}", shop) == "1\n"


@pytest.mark.parametrize("prefix", MARIADB_NAMES)
def test_mariadbs_event_deletes_what_is_over_and_nothing_else(mariadb: MariaDB, shop: str, prefix: str) -> None:
    """By MariaDB's clock; more than two batches in one run."""
    table = f"`{prefix}OutboxData`"
    mariadb.run(script("mysql", "create", prefix=prefix), shop)
    mariadb.run(
        f"""insert into {table} (MessageId, Dispatched, DispatchedAt, PersistenceVersion, Operations)
        select seq, seq > 1, if(seq > 1, utc_timestamp() - interval least(seq, 9) day, null), '', '[]'
        from seq_1_to_9000""",
        shop,
    )
    for _ in range(2):
        mariadb.run(script("mysql", "cleanup", prefix=prefix), shop)
    assert mariadb.run("show events", shop).count(f"{prefix}OutboxData_cleanup".replace("\\", "\\\\")) == 1
    until(lambda: mariadb.run(f"select count(*) from {table}", shop) == "6\n")
    assert mariadb.run(f"select MessageId from {table} order by 1", shop).split() == ["1", "2", "3", "4", "5", "6"]


def test_mariadbs_event_waits_for_nobody_who_has_a_record_locked(mariadb: MariaDB, shop: str) -> None:
    """The oldest record is locked: the others are deleted at once, although the server's lock wait is ten minutes."""
    mariadb.run(script("mysql", "create"), shop)
    mariadb.run(
        """insert into Shop_Web_OutboxData (MessageId, Dispatched, DispatchedAt, PersistenceVersion, Operations)
        select seq, 1, utc_timestamp() - interval 30 day + interval seq second, '', '[]' from seq_1_to_5000""",
        shop,
    )
    mariadb.run("set global innodb_lock_wait_timeout = 600")
    holder = pymysql.connect(**connect_options.arguments(mariadb.dsn(shop)))
    try:
        holder.cursor().execute("select * from Shop_Web_OutboxData where MessageId = '1' for update")
        mariadb.run(script("mysql", "cleanup"), shop)
        until(lambda: mariadb.run("select MessageId from Shop_Web_OutboxData", shop) == "1\n")
    finally:
        holder.close()
        mariadb.run("set global innodb_lock_wait_timeout = default")

"""MariaDB only: translation of its errors, the start of a session, and its URL."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlglot

from pgqueue_admin.dialects import Address, dialect_for
from pgqueue_admin.dialects.errors import (
    DatabaseDown,
    DatabaseError,
    NoAnswer,
    NotPermitted,
    ReadOnly,
    TableChanged,
    TableMissing,
    TimedOut,
)
from pgqueue_admin.dialects.mysql import connect_options
from pgqueue_admin.dialects.mysql.dialect import mysql
from tests.mariadb import MariaDB
from tests.waiting import until

Connect = Callable[..., Any]


@pytest.fixture
def shop(mariadb: MariaDB) -> Iterator[str]:
    with mariadb.database() as name:
        mariadb.run("create table charges (number integer not null)", name)
        yield mariadb.dsn(name)


@pytest.fixture
def open_one(shop: str) -> Iterator[Connect]:
    opened: list[Any] = []

    def open_one(dsn: str = shop, **options: Any) -> Any:
        opened.append(mysql().connect(dsn, **options))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("select * from nothing", TableMissing),
        ("select nothing from charges", TableChanged),
        ("insert into charges values ('x')", DatabaseError),
        ("insert into charges values (null)", DatabaseError),
        ("select nonsense from", DatabaseError),
        ("select max(a.seq * b.seq) from seq_1_to_100000 a join seq_1_to_100000 b", TimedOut),
    ],
)
def test_its_errors_are_ours(open_one: Connect, statement: str, kind: type) -> None:
    session = open_one(statement_timeout=0.2 if kind is TimedOut else None)
    with pytest.raises(kind):
        session.run(statement)
    assert session.value("select 1") == 1, "the session lives"


def test_a_role_that_may_not_is_said(mariadb: MariaDB, shop: str, open_one: Connect) -> None:
    name = shop.split("localhost/")[1].split("?")[0]
    mariadb.run("create or replace user reader@localhost identified by 'a%b@c'")
    mariadb.run(f"grant select on {name}.* to reader@localhost")
    reader = open_one(shop.replace("root@", "reader:a%25b%40c@"))
    with pytest.raises(NotPermitted):
        reader.run("insert into charges values (1)")
    with pytest.raises(DatabaseDown) as told:
        open_one(shop.replace("root@", "reader:secret@"))
    assert "secret" not in str(told.value)


def test_a_session_that_only_reads_is_told(open_one: Connect) -> None:
    with pytest.raises(ReadOnly):
        open_one(read_only=True).run("insert into charges values (1)")


def test_a_session_that_the_server_killed_is_noticed_without_a_round_trip(open_one: Connect) -> None:
    session, killer = open_one(), open_one()
    assert not session.is_closed_by_server()
    killer.run(f"kill connection {session.value('select connection_id()')}")
    until(session.is_closed_by_server)
    with pytest.raises(DatabaseDown):
        session.value("select 1")
    assert session.closed
    assert not session.closed_locally


def test_without_an_answer_a_session_is_given_up_but_not_while_it_is_lent(open_one: Connect) -> None:
    session = open_one(answer_seconds=0.3)
    session.lend(True)
    assert session.value("select sleep(0.6)") == 0
    session.lend(False)
    with pytest.raises(NoAnswer):
        session.value("select sleep(3)")
    assert session.closed


def test_waiting_query_fails_when_its_session_is_cut(open_one: Connect) -> None:
    session, came = open_one(), list[type]()

    def wait() -> None:
        try:
            session.value("select sleep(60)")
        except DatabaseError as error:
            came.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    watcher = open_one()
    asleep = "select count(*) from information_schema.processlist where info = 'select sleep(60)'"
    until(lambda: watcher.value(asleep))
    session.abort()
    waiting.join(30)
    assert came == [DatabaseDown]


def test_session_starts_with_our_settings(open_one: Connect) -> None:
    said = open_one(isolation="serializable").one(
        "select @@session.time_zone, @@tx_isolation, @@autocommit, @@session.sql_mode, @@character_set_client"
    )
    assert said[:3] == ("+00:00", "SERIALIZABLE", 0)
    assert "STRICT_TRANS_TABLES" in said[3]
    assert said[4] == "utf8mb4"
    assert open_one().value("select @@tx_isolation") == "READ-COMMITTED"


def test_a_statement_outside_of_a_transaction_is_committed(open_one: Connect) -> None:
    open_one().run("insert into charges values (1)")
    assert open_one().value("select count(*) from charges") == 1


def test_statement_after_a_lost_savepoint_is_undone(open_one: Connect) -> None:
    """The transaction was ended from within: later writes are not left to the session's next user."""
    session = open_one()

    def ended_within() -> None:
        with session.transaction(), session.transaction():
            session.raw.rollback()
            session.run("insert into charges values (1)")

    with pytest.raises(DatabaseError):
        ended_within()
    session.run("insert into charges values (2)")
    assert [row.number for row in open_one().all("select number from charges")] == [2]


def test_several_statements_in_one_text_are_refused(open_one: Connect) -> None:
    """SQL injected through a careless handler can be part of one statement only."""
    session = open_one()
    with pytest.raises(DatabaseError):
        session.run("select 1; drop table charges")
    assert session.value("select count(*) from charges") == 0


def test_its_url() -> None:
    said = connect_options.arguments("mysql://sh%40p:a%25b%2Fc@db.example.com:3307/shop?ssl_ca=/etc/ca.pem")
    assert said == {
        "host": "db.example.com",
        "port": 3307,
        "user": "sh@p",
        "password": b"a%b/c",
        "database": "shop",
        "ssl_ca": "/etc/ca.pem",
        "ssl_verify_cert": True,
        "ssl_verify_identity": True,
    }
    with pytest.raises(ValueError, match="local_infile is no parameter of a mysql:// URL: there are unix_socket"):
        connect_options.arguments("mysql://host/db?local_infile=1")


def test_without_its_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("pgqueue_admin.dialects.mysql.", "pymysql"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(ValueError, match=r"pymysql is not installed: pip install 'pgqueue-admin\[mysql\]'"):
        dialect_for("mysql://host/db")


PARTS = {"is_over", "is_undated", "is_not_among", "is_any", "created_at", "unknown_at"}


@pytest.mark.parametrize("name", [each.name for each in mysql().outbox])
def test_each_statement_is_one_of_mysql(name: str) -> None:
    """By a parser, with values in place of parameters: no MySQL 8 is available."""
    sql = mysql().outbox
    filled = {"table": Address("", "Billing_OutboxData"), "index": "i", "column": "c", "most": 1}
    text = getattr(sql, name)(**filled, is_over=sql.is_over, is_left=sql.is_not_among, created_at=sql.created_at)
    values = dict.fromkeys(
        ("id", "schema", "name", "operations", "version", "table", "wait", "keep", "grace", "after"), "'1'"
    )
    text = text % {**values, "without": "('1')", "ids": "('1')"}
    parsed = sqlglot.parse_one(f"select 1 where {text}" if name in PARTS else text, read="mysql")
    assert isinstance(parsed, sqlglot.exp.Command) is False

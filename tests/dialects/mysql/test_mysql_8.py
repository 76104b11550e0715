"""MySQL 8 without a server: approved text, parsing, and its differences from MariaDB (docs/reference/outbox.md)."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlglot
from sqlglot import exp

from pgqueue_admin.dialects import Address, errors
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.mysql import connect_options
from pgqueue_admin.dialects.mysql.dialect import mysql
from pgqueue_admin.dialects.mysql.error_mapping import translate
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.outbox import operations
from pgqueue_admin.transport.wire.addresses import Addressing
from tests.dialects.mysql import approve

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/outbox.md"
HEAD = "| | MariaDB 10.11, which is run | MySQL 8, held by text |"
# Differences of MySQL 8 listed on the page: each has a test below.
DIFFERENCES = (
    "`Operations json`", "a statement that takes too long", "a prepared branch", "`xa recover`", "numbers of errors",
    "names of the isolation", "`insert … returning`", "passwords",
)  # fmt: skip
PARTS = {"is_over", "is_undated", "is_not_among", "is_any", "created_at", "unknown_at"}


def parsed(text: str) -> exp.Expr:
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    plain = re.sub(r"%\((\w+)\)s", lambda found: "('1')" if found[1] in ("ids", "without") else "'1'", text)
    return sqlglot.parse_one(plain, read="mysql")


def statements(file: str) -> dict[str, str]:
    return {name: text for name, (_, text) in approve.composed(file).items()}


@pytest.mark.parametrize("file", approve.FILES)
def test_each_statement_is_as_approved(file: str) -> None:
    """Review the change against MySQL 8's manual: no test here runs it."""
    approved = (approve.FOLDER / f"{file}.sql").read_text(encoding="utf-8")
    assert approve.text(file) == approved


@pytest.mark.parametrize("file", ["outbox", "decision", "monitor"])
def test_each_statement_is_one_of_mysql_and_has_nothing_of_mariadb_s_own(file: str) -> None:
    for name, text in statements(file).items():
        tree = parsed(f"select 1 where {text}" if name in PARTS else text)
        assert not isinstance(tree, exp.Command), name
        assert tree.find(exp.Returning) is None, name
        assert "tx_isolation" not in text, name


def test_xa_is_written_as_the_manuals_of_both_do() -> None:
    """The parser does not know it."""
    xid = r"'[^']{1,64}', '[^']{1,64}', \d+"
    for name, text in statements("two_phase").items():
        words = "recover" if name == "prepared" else rf"(begin|end|prepare|commit|rollback) {xid}"
        assert re.fullmatch(f"xa {words}", text), name


def test_the_page_lists_what_is_tested_here() -> None:
    table = re.search(rf"^{re.escape(HEAD)}\n.*\n((?:\|.*\n)+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert table is not None
    assert tuple(line.split("|")[1].strip() for line in table[1].splitlines()) == DIFFERENCES


def test_a_table_with_either_type_is_an_outbox() -> None:
    assert set(type(mysql().outbox_store(Address("", "x"))).column_types["Operations"]) == {"json", "longtext"}


def test_operations_reordered_by_mysqls_json_load_the_same() -> None:
    """Its json keeps the document, not the text: keys by length, then by bytes, and a space after each comma."""
    sent = [
        {
            "MessageId": "1",
            "Headers": {"NServiceBus.MessageId": "1", "b": 'ü\u0001"', "NServiceBus.ConversationId": "c", "aa": None},
            "Body": "eyJhIjogMX0=",
            "Options": {"Destination": "Sales", "TimeToBeReceived": "00:00:10"},
        }
    ]
    addressing = Addressing(postgresql(), "public", {})
    once = operations.load(json.dumps(sent, separators=(",", ":")), addressing, lambda topics: [])
    assert operations.load(json.dumps(_as_mysql(sent)), addressing, lambda topics: []) == once


def _as_mysql(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_mysql(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_mysql(value[key]) for key in sorted(value, key=lambda key: (len(key.encode()), key.encode()))}
    return value


@pytest.mark.parametrize(
    ("server", "limit"),
    [
        ("8.0.36", "set session max_execution_time = 2500"),
        ("8.4.0-commercial", "set session max_execution_time = 2500"),
        ("5.5.5-10.11.6-MariaDB-0+deb12u1", "set session max_statement_time = 2.500"),
    ],
)
def test_a_session_says_its_limit_as_its_server_understands_it(server: str, limit: str) -> None:
    said = connect_options._first(server, "read committed", False, 2.5)
    assert said[-1] == limit
    assert connect_options._first(server, "read committed", False, None) == said[:-1]
    assert not any("isolation =" in each for each in said), "its variable has another name there"


@pytest.mark.parametrize(
    ("number", "kind"),
    [(3024, errors.TimedOut), (3572, errors.Locked), (4031, errors.DatabaseDown), (1227, errors.NotPermitted)],
)
def test_its_errors_are_ours(number: int, kind: type[errors.DatabaseError]) -> None:
    assert type(translate(pymysql.OperationalError(number, "said"))) is kind


def test_role_without_xa_recover_is_told_the_grant() -> None:
    class Refusing:
        """A server's answer to a role without the right."""

        def all(self, query: Any, params: Any = None) -> list[Any]:
            raise translate(pymysql.OperationalError(1227, "Access denied; you need XA_RECOVER_ADMIN"))

    refusing: Session = Refusing()  # type: ignore[assignment]
    (fault,) = mysql().two_phase_commit.faults(refusing)
    assert "XA_RECOVER_ADMIN" in str(fault)


def test_a_password_that_needs_a_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without TLS, MySQL 8's default sends it encrypted, which the driver leaves to another package."""

    def refuse(**given: Any) -> None:
        raise RuntimeError(
            "'cryptography' package is required for sha256_password or caching_sha2_password auth methods"
        )

    monkeypatch.setattr(pymysql, "connect", refuse)
    with pytest.raises(errors.DatabaseDown, match="'cryptography' package is required"):
        mysql().connect("mysql://shop:x@127.0.0.1/shop")

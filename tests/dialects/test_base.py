"""What every dialect promises: statements, addresses, capabilities (dialects.base)."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pgqueue_admin
from pgqueue_admin.dialects import Address, Connection, Dialect, dialect_for
from pgqueue_admin.dialects.connection import Params
from pgqueue_admin.dialects.errors import AddressUnreadable, TableMissing
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.statements import Statements

BELOW_STORES = ["queue", "body_column", "table_repair", "delayed", "decision", "two_phase", "crossing", "waiting"]
NOUNS = [*BELOW_STORES, *(noun for noun, kind in Dialect.__annotations__.items() if kind is Statements)]
OF_POSTGRESQL = {
    "archive_search",
    "call_back",
    "crossing_intent",
    "cron",
    "demo",
    "lease",
    "lease_rules",
    "message_copy",
    "notify",
    "outbox_script",
    "purge",
    "schedule",
    "server",
    "shared_session",
    "text_index",
    "trial",
    "waiting_search",
}  # in addition to the contract
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=63)
SOURCE = "\n".join(path.read_text() for path in Path(pgqueue_admin.__file__).parent.rglob("*.py"))


def folder(dialect: Dialect) -> Path:
    return Path(pgqueue_admin.__file__).parent / "dialects" / dialect.name


@pytest.mark.parametrize("noun", NOUNS)
def test_every_noun_has_its_statements(dialect: Dialect, noun: str) -> None:
    assert list(getattr(dialect, noun))


def test_no_file_is_outside_the_contract(dialect: Dialect) -> None:
    assert {path.stem for path in folder(dialect).glob("*.sql")} == {*NOUNS, *OF_POSTGRESQL}


def test_every_statement_is_used(dialect: Dialect) -> None:
    """An unused statement would be untested."""
    statements = [(noun, each.name) for noun in NOUNS for each in getattr(dialect, noun)]
    called = [name for _, name in statements if re.search(rf"\.{name}\b|\"{name}\"", SOURCE)]
    assert [(noun, name) for noun, name in statements if name not in called] == []


def test_missing_statement_is_named(dialect: Dialect) -> None:
    with pytest.raises(AttributeError, match="no statements for lease_of_life"):
        dialect.lease_of_life  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"archive\.sql has no statement named recieve"):
        dialect.archive.recieve  # noqa: B018


@given(NAMES, NAMES)
def test_an_address_comes_back_from_its_canonical_form(dialect: Dialect, schema: str, table: str) -> None:
    address = Address(schema, table)
    assert dialect.parse_address(dialect.canonical(address), "elsewhere") == address


def test_a_name_with_a_nul_is_refused(dialect: Dialect) -> None:
    """It would end the statement early."""
    with pytest.raises(AddressUnreadable, match="NUL"):
        dialect.queue_store(Address("public", "Sales\0; nonsense"))


@pytest.mark.parametrize("params", [None, {"id": None}])
def test_a_percent_sign_in_a_name_is_no_parameter(connection: Connection, params: Params) -> None:
    with pytest.raises(TableMissing, match=r"per %cent %\(id\)s"):
        connection.run(postgresql().queue.peek(table=Address("public", "per %cent %(id)s")), params)


def test_an_unknown_scheme_has_no_dialect() -> None:
    with pytest.raises(ValueError, match="No dialect for db2://: write postgresql://"):
        dialect_for("db2://host/db")


def test_without_a_driver_no_dsn_leads_to_a_dialect() -> None:
    with pytest.raises(ValueError, match=r"No dialect for oracle://: .* there is no driver for it here"):
        dialect_for("oracle://host/db")

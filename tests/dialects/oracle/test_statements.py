"""Statements of Oracle without a server: approved text, parsed as far as the parser can, without a hint.

If a statement changes, review it and approve the new text: ``python -m tests.dialects.oracle.approve``.
"""

import logging
import re

import pytest
import sqlglot
from sqlglot import exp

from tests.dialects.oracle.approve import APPROVED, composed, text

BLOCKS = {"mark", "work", "purge", "pending"}  # PL/SQL, unknown to sqlglot: its statements are parsed alone
CONDITIONS = {"is_over", "is_undated"}
STATEMENT = re.compile(r"(?:(?<= is\n)|(?<= for\n)|(?<=count\n)|(?<=begin\n)|(?<=for )) *(select|update|delete)\b[^;]*")
# Syntax that sqlglot does not know.
UNKNOWN_WORDS = {"json_table(:without, '$[*]' columns (id varchar2(4000) path '$'))": "json_seen"}
BIND = re.compile(r":([a-z]+)\b")
# "Oracle SQL Reserved Words", of its SQL Language Reference: none may be the name of a bind (ORA-01745).
RESERVED = """
    access add all alter and any as asc audit between by char check cluster column column_value comment
    compress connect create current date decimal default delete desc distinct drop else exclusive exists file
    float for from grant group having identified immediate in increment index initial insert integer intersect
    into is level like lock long maxextents minus mlslabel mode modify nested_table_id noaudit nocompress not
    nowait null number of offline on online option or order pctfree prior public raw rename resource revoke
    row rowid rownum rows select session set share size smallint start successful synonym sysdate table then
    to trigger uid union unique update user validate values varchar varchar2 view whenever where with
"""


def test_each_statement_is_as_approved() -> None:
    assert text() == APPROVED.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", composed())
def test_each_statement_is_one_of_oracle(name: str) -> None:
    whole = composed()[name][1]
    assert is_parsed(f"select 1 from sys.dual where {whole}" if name in CONDITIONS else whole) is (name not in BLOCKS)


@pytest.mark.parametrize(("name", "kinds"), [
    ("mark", ["update"]),
    ("work", ["select"]),
    ("purge", ["select", "delete", "select"]),
    ("pending", ["select", "select"]),
])  # fmt: skip
def test_of_a_block_the_parser_knows_each_statement(name: str, kinds: list[str]) -> None:
    found = list(STATEMENT.finditer(composed()[name][1]))
    assert [each[1] for each in found] == kinds
    assert all(is_parsed(each[0]) for each in found)


def is_parsed(whole: str) -> bool:
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of unknown syntax
    for words, known in UNKNOWN_WORDS.items():
        whole = whole.replace(words, known)
    try:
        return not any(isinstance(each, exp.Command) for each in sqlglot.parse(whole, read="oracle"))
    except sqlglot.errors.SqlglotError:
        return False


@pytest.mark.parametrize("name", composed())
def test_there_is_no_hint(name: str) -> None:
    """The sheet lists none for Oracle."""
    assert "/*" not in composed()[name][1]
    assert "--+" not in composed()[name][1]


@pytest.mark.parametrize("name", composed())
def test_no_bind_has_a_name_that_oracle_refuses(name: str) -> None:
    assert set(RESERVED.split()).isdisjoint(BIND.findall(composed()[name][1]))


@pytest.mark.parametrize("name", ["purge", "pending"])
def test_locked_rows_are_skipped_before_the_limit_counts(name: str) -> None:
    """Otherwise a second cleaner would stop early: rownum counts rows that the first has locked."""
    whole = composed()[name][1]
    assert re.search(r"for update skip locked;", whole)
    assert "bulk collect into found limit 10" in whole
    assert "rownum" not in whole.partition("cursor ")[2]


@pytest.mark.parametrize("name", ["store", "complete"])
def test_operations_of_any_size_are_no_value_of_a_block(name: str) -> None:
    """In a block a value is limited to 32,767 bytes."""
    assert name not in BLOCKS
    assert ":operations" in composed()[name][1]

"""Statements of SQL Server without a server: approved text, parsed as far as the parser can, without new hints.

If a statement changes, review it and approve the new text: ``python -m tests.dialects.sqlserver.approve``.
"""

import logging
import re
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from tests.dialects.sqlserver.approve import text_of
from tests.dialects.sqlserver.statements import LOOKING, NOUNS, composed

APPROVED = Path(__file__).with_name("approved")
EACH = [(noun, name) for noun in NOUNS for name, _, _ in composed(noun)]
PARTS = {
    ("archive", "has_conversation"),
    ("browse", "columns"),
    ("browse", "delayed_columns"),
    ("monitor", "sent"),
    ("monitor", "heap_bytes"),
    ("waiting", "unfilled"),
}
LISTED = {("queue", "row"), ("delayed", "row"), ("subscription", "topic"), *PARTS}  # parts included in others
CONDITIONS = {("archive", "has_conversation"), ("outbox", "is_over"), ("outbox", "is_undated")}
# Syntax that sqlglot does not know, with the reason why that is no loss.
UNPARSED = {
    ("delayed", "move_due"): "OUTPUT … INTO: what is moved is parsed alone below",
    ("delayed", "move_due_without_recoverable"): "as move_due",
    ("outbox", "mark"): "THROW: the update is parsed alone below",
    ("table_repair", "add_default"): "DEFAULT … FOR a column",
    ("table_repair", "disable_trigger"): "DISABLE TRIGGER",
    ("session", "snapshot"): "an isolation level that it does not know",
    ("session", "savepoint"): "SAVE TRANSACTION, behind a condition",
    ("session", "release_savepoint"): "THROW behind a condition, and nothing else",
}
UNKNOWN_WORDS = (" nonclustered (", " clustered (", "option (maxdop 1)")  # of a key; of a delete
HINT = re.compile(r"\b(?:with|option) \((?!\s*select)([^)]*)\)", re.IGNORECASE)
# Wire sheet 10.2 and outbox sheet 8: how the original skips rows that other sessions have locked.
HINTS = {
    "updlock, readpast, rowlock",  # receive, move due, and the relay
    "readpast, readcommittedlock",  # peek, and the next due time
    "rowlock, readpast",  # purge
    "holdlock, tablock",  # subscribe
    "readcommittedlock",  # outcome of a transaction: waits for one about to commit
    "maxdop 1",  # purge of an outbox
}


def statement(noun: str, name: str) -> str:
    return next(text for found, _, text in composed(noun) if found == name)


@pytest.mark.parametrize("noun", NOUNS)
def test_each_statement_is_as_approved(noun: str) -> None:
    assert text_of(noun) == (APPROVED / f"{noun}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize(("noun", "name"), EACH)
def test_each_statement_is_one_of_sql_server(noun: str, name: str) -> None:
    text = statement(noun, name)
    if (noun, name) in LISTED - CONDITIONS:
        assert sum(text in other for each in NOUNS for _, _, other in composed(each)) > 1
        return
    whole = f"select 1 where {text}" if (noun, name) in CONDITIONS else text
    assert is_parsed(whole) is ((noun, name) not in UNPARSED)


def test_statements_unknown_to_the_parser_are_parsed_in_part() -> None:
    moving = statement("delayed", "move_due")
    assert is_parsed(moving.partition("\ninto ")[0])
    assert is_parsed(statement("outbox", "mark").partition(";")[0])


def is_parsed(text: str) -> bool:
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of unknown syntax
    for words in UNKNOWN_WORDS:
        text = text.replace(words, " (" if words.endswith("(") else "")
    named = re.sub(r"%\((\w+)\)s", r"@\1", text).replace("%%", "%")
    try:
        return not any(isinstance(each, exp.Command) for each in sqlglot.parse(named, read="tsql"))
    except sqlglot.errors.SqlglotError:
        return False


@pytest.mark.parametrize(("noun", "name"), EACH)
def test_there_is_no_hint_outside_the_sheet(noun: str, name: str) -> None:
    assert hints(statement(noun, name)) <= HINTS


def hints(text: str) -> set[str]:
    return {match[1].lower() for match in HINT.finditer(text)}


def test_a_hint_outside_the_sheet_would_be_found() -> None:
    for hint in ("with (nolock)", "option (recompile)", "with (readpast)", "with (updlock, rowlock, readpast)"):
        (found,) = hints(f"delete from t {hint}")
        assert found not in HINTS


RECEIVING = {
    ("queue", "receive"): "updlock, readpast, rowlock",
    ("queue", "peek_count"): "readpast, readcommittedlock",
    ("queue", "peek_range"): "readpast, readcommittedlock",
    ("queue", "purge"): "rowlock, readpast",
    ("queue", "purge_expired"): "rowlock, readpast",
    ("delayed", "move_due"): "updlock, readpast, rowlock",
    ("delayed", "next_due"): "readpast, readcommittedlock",
    ("subscription", "subscribe"): "holdlock, tablock",
    ("subscription", "rows"): "readpast, readcommittedlock",
    ("subscription", "published"): "readpast, readcommittedlock",
    ("waiting", "count"): "readpast, readcommittedlock",
    ("waiting", "left"): "readpast, readcommittedlock",
    ("waiting", "take"): "updlock, readpast, rowlock",
    ("waiting", "hold"): "updlock, readpast, rowlock",
    ("waiting", "numbers_of"): "readpast, readcommittedlock",
    ("waiting", "has_own"): "updlock, readpast, rowlock",
    ("waiting", "move"): "updlock, readpast, rowlock",
    ("waiting", "hold_delayed"): "updlock, readpast, rowlock",
    ("waiting", "has_own_delayed"): "updlock, readpast, rowlock",
    ("waiting", "run_now"): "updlock, readpast, rowlock",
    ("crossing", "delayed_body"): "updlock, readpast, rowlock",
    ("crossing", "remove_delayed"): "rowlock, readpast",
    ("crossing", "body"): "updlock, readpast, rowlock",
    ("crossing", "remove"): "rowlock, readpast",
}
_OF_TABLES = re.compile(r"from \[dbo\]\.\[Sales(?:\.Delayed)?\]")
_LOOKS = [(noun, name) for noun, name in EACH if noun in LOOKING]


@pytest.mark.parametrize(("noun", "name"), RECEIVING)
def test_receiving_statements_have_their_locking_hints(noun: str, name: str) -> None:
    assert hints(statement(noun, name)) - {"maxdop 1"} == {RECEIVING[noun, name]}


@pytest.mark.parametrize(("noun", "name"), _LOOKS)
def test_a_look_reads_past_what_others_have_and_changes_nothing(noun: str, name: str) -> None:
    """Each read of a message table skips locked rows; the only write is to a variable."""
    text = statement(noun, name)
    read_past = len(re.findall(r" with \(readpast, readcommittedlock\)", text))
    assert len(_OF_TABLES.findall(text)) == read_past
    assert re.findall(r"\b(?:insert|update|delete|merge|into|truncate|exec)\b(?! @seen)", text) == (
        ["insert"] if "insert into @seen" in text else []
    )

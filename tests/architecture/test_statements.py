"""Statement files have a name, a reason and one statement each; tables have their full names."""

import re
from pathlib import Path

import pytest

import pgqueue_admin
from pgqueue_admin.dialects.statements import parse

FILES = sorted(Path(pgqueue_admin.__file__).parent.rglob("*.sql"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_statement_has_a_name_and_a_reason(path: Path) -> None:
    assert list(parse(path))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("select 1\n", "no name"),
        ("-- name: a\nselect 1\n", "no reason"),
        ("-- name: a\n-- why\n\n", "no statement"),
        ("-- name: a\n-- why\nselect 1\n-- name: a\n-- why\nselect 2\n", "twice"),
        ("select 0\n-- name: a\n-- why\nselect 1\n", "text before the first name"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str, what: str) -> None:
    path = tmp_path / "noun.sql"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"noun\.sql"):
        assert list(parse(path)) is None, what


_NO_TABLE = re.compile(
    r"--.*|'(?:[^']|'')*'|extract\([a-z]+ from|substring\([^()]+ from|is (?:not )?distinct from|rows from|from stdin"
    r"|for (?:no key )?update(?: of \w+)?(?: skip locked)?|(?:do|then) update set|(?:update|delete) on|or update"
    r"|update or|fetch \d+ from|revoke [^;]* from public|\bonly\b|if (?:not )?exists|\blateral\b|bulk collect into \w+"
)
_TABLE = re.compile(r"\b(?:from|join|into|update|table|references)\s+([a-z_][\w.]*)(\s*\()?")
_GIVEN = re.compile(r"\b(?:old|new) table (\w+)")  # transition tables of a trigger's statement
_NAMED = re.compile(r"(\w+)(?: \([\w, ]+\))? as (?:not )?(?:materialized )?\(")


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_table_is_named_with_its_schema(path: Path) -> None:
    """Except tables of the catalog and the console's own, which alone are on its search path."""
    whole = path.read_text(encoding="utf-8")
    named = {*_NAMED.findall(whole), *_GIVEN.findall(whole)}
    wrong = []
    for name, _, text in parse(path):
        tables = [table for table, is_call in _TABLE.findall(_NO_TABLE.sub(" ", text)) if not is_call]
        wrong += [(name, table) for table in tables if not _is_in_full(table) and table not in named]
    assert wrong == []


def _is_in_full(table: str) -> bool:
    return "." in table or table.startswith(("pg_", "pgqueue_"))


def test_a_table_without_its_schema_would_be_found() -> None:
    asked = "with a as (select 1) delete from only sales where exists (select from a join {table} t on true)"
    assert [table for table, _ in _TABLE.findall(_NO_TABLE.sub(" ", asked))] == ["sales", "a"]

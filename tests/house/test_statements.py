"""The shape of statement files: a name, a reason, one statement."""

from pathlib import Path

import pytest

import pgqueue_admin.dialects
from pgqueue_admin.dialects.statements import parse

FILES = sorted(Path(pgqueue_admin.dialects.__file__).parent.glob("*/*.sql"))


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

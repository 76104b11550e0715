"""Every code cited in the tree has a glossary row, because the cited documents are not in the repository."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/glossary.md"
ROWS = re.findall(r"^- \*\*([^*]+)\*\*: ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
CITED = {
    "": re.compile(r"(?<![\w%])([TC]\d{1,2})\b"),  # not the bytes of %C0
    "sheet": re.compile(r"\bwire(?: sheet)? (\d+(?:\.\d+)?(?:(?:,| and|, and) \d+(?:\.\d+)?)*)", re.IGNORECASE),
    "CONSOLE ": re.compile(r"\bCONSOLE(?:\.md)? (?:section )?(\d+(?:\.\d+)?)"),
    "DESIGN decision ": re.compile(r"\bDESIGN decision (\d+)"),
}


def texts() -> Iterator[str]:
    for folder in ("pgqueue_admin", "templates", "static/pgqueue_admin", "tests", "bench", "examples", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".sql", ".html", ".js", ".css", ".md"} and path not in {PAGE, Path(__file__)}:
                yield path.read_text(encoding="utf-8")
    yield (ROOT / "README.md").read_text(encoding="utf-8")
    yield (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tree() -> str:
    return "\n".join(texts())


@pytest.mark.parametrize("family", CITED, ids=["requirements", "wire sheet", "CONSOLE", "DESIGN"])
def test_every_code_of_the_tree_has_its_row(tree: str, family: str) -> None:
    prefix = family.removeprefix("sheet")
    cited = {prefix + each for found in CITED[family].findall(tree) for each in re.split(r",? and |, ", found)}
    assert cited
    assert cited - set(ROWS) == set()


def test_no_word_and_no_code_has_two_rows() -> None:
    assert len(ROWS) > 80
    assert sorted(ROWS) == sorted(set(ROWS))

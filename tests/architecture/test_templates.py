"""Templates are readable: no overlong line, and each says what it is unless its path does."""

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).resolve().parent.parent.parent / "templates"
WIDEST = 160
NAMED = re.compile(r"pgqueue_admin/[\w/]+\.(?:html|txt)")


def paths() -> list[str]:
    return sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.html"))


def lines(path: str) -> list[str]:
    return (TEMPLATES / path).read_text().splitlines()


@pytest.mark.parametrize("path", paths())
def test_no_line_is_endless(path: str) -> None:
    assert [number for number, line in enumerate(lines(path), 1) if len(line) > WIDEST] == []


@pytest.mark.parametrize("path", [path for path in paths() if not path.endswith("/page.html")])
def test_template_opens_with_a_describing_comment(path: str) -> None:
    """<noun>/page.html is the page of that noun; every other template opens with one line that describes it."""
    assert re.fullmatch(r"\{# .+ #\}", lines(path)[0])


def test_templates_named_in_code_exist() -> None:
    sources = [*TEMPLATES.rglob("*.html"), *(TEMPLATES.parent / "pgqueue_admin").rglob("*.py")]
    named = {(path.name, name) for path in sources for name in NAMED.findall(path.read_text("utf-8"))}
    assert len(named) > 300
    assert {(where, name) for where, name in named if not (TEMPLATES / name).exists()} == set()

"""No page says what a tired operator reads twice: "seems to", "told", "lies", a clause without its noun."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("alerts", "console", "formatting", "services")
UNCLEAR = re.compile(
    r"without a table, which|more needs? you|has its processes|not on the wire|clocks disagree"
    r"|\b(lies dead|lay there|seems? to|cannot tell yet|declare it$|those who (write|store|send))"
    r"|\b(nobody told|not told|was told|nothing tells|do not tell\b|tells that\b|has told)"
    r"|\bwhat (they died of|you pressed|you did last|was here|was there|arrived since|comes waits|finished since)\b"
    r"|\bwhat is (usual|in hand|in the set|sent stays|not sent|not yet sent)\b",
    re.IGNORECASE,
)
WITH_TEXT = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_they_are_on_no_page() -> None:
    assert [(str(path.relative_to(ROOT)), found[0]) for path, text in texts() if (found := UNCLEAR.search(text))] == []


def texts() -> Iterator[tuple[Path, str]]:
    """Of templates without their comments and tags, and of modules without their docstrings."""
    for path in (ROOT / "templates").rglob("*.*"):
        plain = re.sub(r"\{#.*?#\}|\{%.*?%\}|<[^>]*>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield path, re.sub(r"\s+", " ", plain)
    for room in ROOMS:
        for path in (ROOT / "pgqueue_admin" / room).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            documented = {each.body[0] for each in ast.walk(tree) if isinstance(each, WITH_TEXT) and each.body}
            for each in ast.walk(tree):
                if isinstance(each, ast.stmt) and each not in documented:
                    yield from ((path, text) for text in parts(each))


def parts(statement: ast.stmt) -> Iterator[str]:
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            found = (each.value for each in ast.walk(child) if isinstance(each, ast.Constant))
            yield from (each for each in found if isinstance(each, str))

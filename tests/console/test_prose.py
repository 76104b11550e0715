"""No page uses phrases that a tired operator must read twice: "seems to", "told", "lies", a clause without its noun."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    *(
        "admin",
        "alerts",
        "archive",
        "config",
        "console",
        "demo",
        "formatting",
        "history",
        "housekeeping",
        "lease",
        "live",
    ),
    *(
        "api",
        "dialects",
        "embedded",
        "management",
        "models",
        "monitor",
        "osproc",
        "outbox",
        "services",
        "transport",
        "workers",
    ),
)
SCRIPTS = ROOT / "static/pgqueue_admin"
UNCLEAR = re.compile(
    r"without a table, which|more needs? you|has its processes|not on the wire|clocks disagree"
    r"|\b(lies dead|lay there|seems? to|cannot tell yet|declare it$|those who (write|store|send))"
    r"|\b(nobody told|not told|was told|nothing tells|do not tell\b|tells that\b|has told)"
    r"|\bwhat (they died of|you pressed|you did last|was here|was there|arrived since|comes waits|finished since)\b"
    r"|\bwhat is (usual|in hand|in the set|sent stays|not sent|not yet sent)\b"
    r"|\b(nobody seems|somebody was quicker|dropped unread|look again$|further from the head|noticed: nothing)\b"
    r"|\b(behind the dotted line|behind those who|nothing was different|reads as pgqueue|everywhere it lies)\b"
    r"|\b(leaves dead in the same|what is retried waits|one of their times|this address belongs to a button)\b"
    r"|\b(lies? in queues|all that lie|wherever it lies|(cannot|can) be told|were told|is told by|tells (it|of)\b)"
    r"|\b(known of \d+ of|it is grey now|archived by us|what was chosen|addresses without a table)\b",
    re.IGNORECASE,
)
# Phrases in column notes, which no page shows.
OF_COLUMNS = {
    ("models/history.py", "those who write"),
    ("models/history.py", "what is usual"),
    ("models/process.py", "not told"),
    ("models/queue.py", "was told"),
    ("models/caught_duplicates.py", "were told"),
}
WITH_TEXT = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_unclear_phrases_are_on_no_page() -> None:
    found = [(str(path.relative_to(ROOT)), said[0]) for path, text in texts() if (said := UNCLEAR.search(text))]
    assert set(found) == {(f"pgqueue_admin/{file}", said) for file, said in OF_COLUMNS}


@pytest.mark.parametrize(
    "place", ["admin/", "archive/", "live/", "static/", "templates/admin/", "templates/pgqueue_admin/admin/"]
)
def test_texts_of_each_place_are_read(place: str) -> None:
    assert any(str(path.relative_to(ROOT)).removeprefix("pgqueue_admin/").startswith(place) for path, _ in texts())


def texts() -> Iterator[tuple[Path, str]]:
    """Texts of templates without comments and tags, strings of scripts, and modules without docstrings."""
    for path in (ROOT / "templates").rglob("*.*"):
        plain = re.sub(r"\{#.*?#\}|\{%.*?%\}|<[^>]*>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield path, re.sub(r"\s+", " ", plain)
    for path in SCRIPTS.glob("*.js"):
        plain = re.sub(r"(?m)^\s*//[^\n]*$|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.findall(r"\"([^\"\\n]*)\"|'([^'\\n]*)'|`([^`]*)`", plain)
        yield from ((path, text) for each in found for text in each if text)
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

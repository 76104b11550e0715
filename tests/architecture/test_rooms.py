"""The picture in docs/explanation/architecture.md matches the folders, and each module has a docstring."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "pgqueue_admin"


def rooms() -> set[str]:
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def modules() -> list[Path]:
    found = [path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts and path.read_text().strip()]
    assert len(found) > 100
    return found


def test_the_picture_shows_the_rooms_that_are_there() -> None:
    picture = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    drawn = set(re.findall(r"^  ([a-z]+)/ ", picture, re.MULTILINE))
    assert drawn == rooms()


def test_each_module_opens_with_what_lives_there() -> None:
    assert [str(path) for path in modules() if not ast.get_docstring(ast.parse(path.read_text("utf-8")))] == []


_STATEMENT = re.compile(r"\s*(select|insert into|update|delete from|create|alter|drop|lock|truncate)\s", re.IGNORECASE)
_EXECUTES = {"run", "one", "all", "value", "execute"}


def test_sql_is_written_in_sql_files_only() -> None:
    """Outside dialects no string is executed by a driver: every statement has a name and a reason."""
    outside = [path for path in modules() if "dialects" not in path.parts]
    assert [f"{path}:{line}" for path in outside for line in statements_in(path)] == []


def statements_in(path: Path) -> Iterator[int]:
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in _EXECUTES:
            texts = [text.value for text in call.args if isinstance(text, ast.Constant)]
            if any(isinstance(text, str) and _STATEMENT.match(text) and text != "select 1" for text in texts):
                yield call.lineno

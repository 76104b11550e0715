"""Names in docstrings exist: exceptions of “Raises …”, modules and their members, files."""

import ast
import builtins
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pgqueue_admin"
RAISES = re.compile(r"\bRaises\s+(?:(?:[a-z_]+\.)*[A-Z]\w*(?!’|'|\w)(?:,?\s+(?:and|or)\s+|,\s+)?)+")
DOTTED = re.compile(r"(?<![\w./@-])([a-z_]\w*(?:\.\w+)+)(?![\w./-]|\()")
OF_OTHERS = {"Http404", "CommandError", "TransactionManagementError", "OperationalError", "Error"}
# Dotted names that are no modules: names of libraries, database tables, examples.
NO_MODULES = {
    "django", "psycopg", "transaction", "messages", "schema", "sys", "dbms_sql", "archive_search",
    "customer", "order", "shop", "folder", "thumbs",
}  # fmt: skip


class Module:
    """A module's docstrings by line, names, classes with their bases, and tuples in capitals."""

    def __init__(self, path: Path):
        self.path, self.room = path, path.relative_to(PACKAGE).parts[0]
        self.docstrings: dict[int, str] = {}
        self.names: set[str] = set()
        self.bases: dict[str, set[str]] = {}
        self.constants: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.docstrings[node.body[0].lineno if node.body else 0] = ast.get_docstring(node) or ""
            if isinstance(node, ast.ClassDef):
                self.bases[node.name] = {ast.unparse(base).split(".")[-1] for base in node.bases}
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                self.names.add(node.name)
            if isinstance(node, ast.alias):
                self.names.add(node.asname or node.name)
            if isinstance(node, ast.Name):
                self.names.add(node.id)
                if node.id.isupper() and isinstance(node.ctx, ast.Store):
                    self.constants.add(node.id)


@cache
def modules() -> list[Module]:
    return [Module(path) for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts]


def docstrings() -> Iterator[tuple[Module, int, str]]:
    for module in modules():
        for line, text in module.docstrings.items():
            yield module, line, text


@cache
def is_exception(name: str) -> bool:
    known = getattr(builtins, name, None)
    if isinstance(known, type):
        return issubclass(known, BaseException)
    bases = {base for module in modules() for base in module.bases.get(name, ()) if base != name}
    return name in OF_OTHERS or any(map(is_exception, bases))


@cache
def rooms_of(name: str) -> set[str]:
    """The rooms that define classes, or tuples of them, of this name."""
    return {module.room for module in modules() if name in module.bases or name in module.constants}


@cache
def height(room: str) -> int:
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = [rule["layers"] for rule in rules if rule["id"] == "rooms"]
    (found,) = [number for number, layer in enumerate(reversed(layers)) if room in layer.split(" | ")]
    return found


def can_raise(module: Module, name: str) -> bool:
    """A port may raise an exception of a room above, which implements it."""
    rooms = rooms_of(name)
    if not rooms:
        return is_exception(name)
    if module.path.name != "ports.py" and not any(
        room == module.room or height(room) < height(module.room) for room in rooms
    ):
        return False
    return name.isupper() or is_exception(name)


def test_exceptions_named_by_docstrings_can_be_raised() -> None:
    wrong = [
        f"{module.path.relative_to(ROOT)}:{line}: {name}"
        for module, line, text in docstrings()
        for found in RAISES.finditer(text)
        for name in re.findall(r"\b[A-Z]\w+", found[0].removeprefix("Raises"))
        if not can_raise(module, name)
    ]
    assert wrong == []


@cache
def held() -> dict[str, set[str]]:
    """The names in each module, by its own name with and without its packages."""
    found: dict[str, set[str]] = {}
    for module in modules():
        parts = module.path.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        for start in range(len(parts)):
            found.setdefault(".".join(parts[start:]), set()).update(module.names)
    return found


@cache
def files() -> set[str]:
    return {path.name for folder in (PACKAGE, ROOT / "templates") for path in folder.rglob("*.*")} | {
        "manage.py",
        "admin.py",
    }


def is_there(name: str) -> bool:
    if name.split(".")[0] in NO_MODULES or name in held() or name in files():
        return True
    parts = name.split(".")
    return any(parts[to] in held().get(".".join(parts[:to]), ()) for to in range(1, len(parts)))


def test_modules_and_files_that_are_named_are_there() -> None:
    wrong = [
        f"{module.path.relative_to(ROOT)}:{line}: {name}"
        for module, line, text in docstrings()
        for name in DOTTED.findall(text)
        if not is_there(name)
    ]
    assert wrong == []

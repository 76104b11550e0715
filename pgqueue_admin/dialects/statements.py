"""Named SQL statements: a file per noun, read once."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HEAD = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)\n-- (?P<why>\S.*)\n", re.MULTILINE)

Compose = Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. Call it with its identifiers to get a query for the driver."""

    name: str
    why: str
    text: str
    compose: Compose

    def __call__(self, **identifiers: Any) -> Any:
        return self.compose(self.text, identifiers)


class Statements:
    """The statements of one .sql file, by attribute: ``queue.receive(table=address)``."""

    def __init__(self, path: Path, compose: Compose):
        self._path = path
        self._by_name = {name: Statement(name, why, text, compose) for name, why, text in parse(path)}

    def __getattr__(self, name: str) -> Statement:
        try:
            return self._by_name[name]
        except KeyError:
            raise AttributeError(f"{self._path} has no statement named {name}") from None

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._by_name.values())


class StatementFolder:
    """The .sql files of a folder, by attribute: ``folder.queue`` is queue.sql, read on first use."""

    def __init__(self, name: str, folder: Path, compose: Compose):
        self.name = name
        self._folder, self._compose = folder, compose

    def __getattr__(self, noun: str) -> Statements:
        if noun.startswith("_") or not (path := self._folder / f"{noun}.sql").exists():
            raise AttributeError(f"{self.name} has no statements for {noun}")
        statements = Statements(path, self._compose)
        setattr(self, noun, statements)
        return statements


def parse(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (name, why, text) of each statement.

    A statement is a line ``-- name: <name>``, a line ``-- <why it is as it is>``, and SQL until the next name.
    Raises ValueError if text precedes the first name, or a name has no reason, no statement, or occurs twice.
    """
    source = path.read_text(encoding="utf-8")
    heads = list(_HEAD.finditer(source))
    if source.count("-- name:") != len(heads) or source[: heads[0].start() if heads else None].strip():
        raise ValueError(f"{path}: every statement needs a name line and, below it, a line that says why")
    seen: set[str] = set()
    for head, end in zip(heads, [*(h.start() for h in heads[1:]), len(source)], strict=True):
        name, text = head["name"], source[head.end() : end].strip()
        if name in seen or not text:
            raise ValueError(f"{path}: {name} is empty or there twice")
        seen.add(name)
        yield name, head["why"], text

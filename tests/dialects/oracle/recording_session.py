"""A session that records its statements: it tests their text, not what a database does with them."""

import re
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pgqueue_admin.dialects.oracle.dialect import Oracle

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_BIND = re.compile(r":([a-z]+)\b")


class RecordingSession:
    """The parts of a ReceiveSession (dialects.connection) that the outbox uses. Binds must match a statement exactly.

    ``rows``: answers by statement name. ``happened``: names of statements, and ends of transactions.
    """

    closed = closed_locally = in_transaction = False

    def __init__(self, **rows: list[dict[str, Any]]):
        self.happened: list[str] = []
        self.asked: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._rows = rows

    def all(self, query: Any, params: Any = None) -> list[Any]:
        given = params or {}
        assert set(_BIND.findall(_QUOTED.sub("", query))) == set(given), "the driver refuses one too many or too few"
        name = _name(query)
        self.happened.append(name)
        self.asked[name] = query, given
        return [namedtuple("Row", row)(**row) for row in self._rows.get(name, [])]

    def one(self, query: Any, params: Any = None) -> Any:
        return next(iter(self.all(query, params)), None)

    def value(self, query: Any, params: Any = None) -> Any:
        row = self.one(query, params)
        return row[0] if row else None

    def run(self, query: Any, params: Any = None) -> int:
        self.all(query, params)
        return 1

    def run_last(self, asked: Iterable[tuple[Any, Any]]) -> None:
        for query, params in asked:
            self.run(query, params)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        self.happened.append("begin")
        yield self
        self.happened.append("commit")

    @contextmanager
    def transaction_with(self, query: Any, params: Any = None) -> Iterator[Any]:
        with self.transaction():
            yield self.all(query, params)

    def rollback(self) -> None:
        self.happened.append("rollback")

    def place_guard(self) -> None: ...
    def is_closed_by_server(self) -> bool:
        return False


def _name(query: str) -> str:
    """The statement's name in its file."""
    (name,) = (each.name for each in Oracle().outbox if re.fullmatch(_pattern(each.text), query))
    return name


def _pattern(text: str) -> str:
    return "".join("(?s:.+)" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", text))

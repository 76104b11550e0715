"""Our statements as the driver takes them, and as libpq does."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import psycopg
from psycopg import sql

from pgqueue_admin.dialects.connection import Connection, Params

_PLACE = re.compile(r"%(?:%|\((\w+)\)s)")


class Query(sql.Composed):
    """A statement from a file with its identifiers in place; every literal % in it is doubled.

    Two are the same when they are one object: ``dialect.compose`` keeps them.
    ``is_single``: several commands in one text cannot be prepared.
    """

    def __init__(self, parts: Sequence[Any], *, is_single: bool = True):
        super().__init__(parts)
        self.is_single = is_single

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @cached_property
    def numbered(self) -> tuple[bytes, tuple[str, ...]]:
        """With ``$1`` in the place of a name, and the names in the order of their numbers."""
        names: dict[str, int] = {}

        def place(match: re.Match[str]) -> str:
            name = match[1]
            return f"${names.setdefault(name, len(names) + 1)}" if name else "%"

        return _PLACE.sub(place, self.as_string(None)).encode(), tuple(names)


def never_none(query: Any, params: Any) -> Any:
    """A statement of ours has its % doubled; without parameters the driver would leave them so."""
    return {} if params is None and isinstance(query, Query) else params


def written(query: Query) -> str:
    """As a person may run it; one without parameters."""
    return query.as_string(None).replace("%%", "%")


def literal(connection: Connection, query: Any, params: Params = None) -> str:
    """A statement with its values in it, for a program that has only text. Values are quoted as the driver quotes them,
    for this session's server and encoding."""
    return psycopg.ClientCursor(connection.raw).mogrify(query, params)

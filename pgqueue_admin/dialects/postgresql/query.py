"""Our statements in the forms of the driver and of libpq."""

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

    Queries are equal only if identical: ``dialect.compose`` caches them.
    ``is_single``: the text is one command; several cannot be prepared.
    """

    def __init__(self, parts: Sequence[Any], *, is_single: bool = True):
        super().__init__(parts)
        self.is_single = is_single

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @cached_property
    def numbered(self) -> tuple[bytes, tuple[str, ...]]:
        """The text with ``$1`` for each name, and the names in the order of their numbers."""
        names: dict[str, int] = {}

        def place(match: re.Match[str]) -> str:
            name = match[1]
            return f"${names.setdefault(name, len(names) + 1)}" if name else "%"

        return _PLACE.sub(place, self.as_string(None)).encode(), tuple(names)


def never_none(query: Any, params: Any) -> Any:
    """Parameters for a statement: without any, the driver would not reduce the doubled % of ours."""
    return {} if params is None and isinstance(query, Query) else params


def written(query: Query) -> str:
    """A statement without parameters, as a person can run it."""
    return query.as_string(None).replace("%%", "%")


def literal(connection: Connection, query: Any, params: Params = None) -> str:
    """A statement with its values inserted, for programs that take only text. The driver quotes them for this
    session's server and encoding."""
    return psycopg.ClientCursor(connection.raw).mogrify(query, params)

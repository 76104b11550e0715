"""Our statements in the driver's form: by %(name)s, which it sends as parameters of sp_executesql."""

from collections.abc import Callable
from typing import Any

from pgqueue_admin.dialects.connection import Params
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.text_composer import composed


class Query(str):
    """A statement from a file with its identifiers in place; every literal % in it is doubled."""

    def form_for(self, session: Any) -> "Query":
        """The statement to execute; a variant may depend on the table's columns, read in the session."""
        return self

    def given(self, params: Params) -> Params:
        """Its values in the driver's form: without any, the driver would not reduce our doubled %."""
        return {} if params is None else params

    def refused(self, error: Exception) -> None:
        """Called after the server refused the statement."""

    def read(self, row: Any) -> Any:
        """Convert a result row to the store's type."""
        return row


class Catalog(str):
    """Prefix of ``sys.`` for another database: ``[catalog].``, or empty."""

    __slots__ = ()


class ReadingQuery(Query):
    """A query whose rows are converted by a function."""

    _read: Callable[[Any], Any]

    @classmethod
    def of(cls, query: Query, read: Callable[[Any], Any]) -> "ReadingQuery":
        made = cls(query)
        made._read = read
        return made

    def read(self, row: Any) -> Any:
        return self._read(row)


def compose(text: str, identifiers: dict[str, Any]) -> Query:
    """Fill ``{names}``: an Address as [schema].[table], a text as one identifier, a number or a Query unchanged."""
    return Query(composed(text, identifiers, lambda table: _doubled(addressing.qualified(table)), _placed))


def _placed(value: str) -> str:
    if isinstance(value, Query):
        return value
    return _doubled(value if isinstance(value, Catalog) else IDENTIFIERS.quote(value))


def _doubled(text: str) -> str:
    return text.replace("%", "%%")


def written(query: Query) -> str:
    """A statement without parameters, as a person can run it."""
    return query.replace("%%", "%")

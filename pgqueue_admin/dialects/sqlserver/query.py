"""Our statements as the driver takes them: by %(name)s, which it sends as parameters of sp_executesql."""

from collections.abc import Callable
from typing import Any

from pgqueue_admin.dialects.connection import Params
from pgqueue_admin.dialects.sqlserver import addressing
from pgqueue_admin.dialects.sqlserver.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.text_composer import composed


class Query(str):
    """A statement from a file with its identifiers in place; every literal % in it is doubled."""

    def form_for(self, session: Any) -> "Query":
        """The statement itself; one that depends on the table's columns asks the session."""
        return self

    def given(self, params: Params) -> Params:
        """Its values as the driver takes them: our % are doubled, and without any it would leave them so."""
        return {} if params is None else params

    def refused(self, error: Exception) -> None:
        """The server refused it."""

    def read(self, row: Any) -> Any:
        """A row of its answer, as its store promises it."""
        return row


class Catalog(str):
    """What stands before ``sys.`` of another database: ``[catalog].``, or nothing."""

    __slots__ = ()


class ReadingQuery(Query):
    """One whose rows are made into others."""

    _read: Callable[[Any], Any]

    @classmethod
    def of(cls, query: Query, read: Callable[[Any], Any]) -> "ReadingQuery":
        made = cls(query)
        made._read = read
        return made

    def read(self, row: Any) -> Any:
        return self._read(row)


def compose(text: str, identifiers: dict[str, Any]) -> Query:
    """Fill ``{names}``: an Address as [schema].[table], a text as one identifier; a number or a Query as it stands."""
    return Query(composed(text, identifiers, lambda table: _doubled(addressing.qualified(table)), _placed))


def _placed(value: str) -> str:
    if isinstance(value, Query):
        return value
    return _doubled(value if isinstance(value, Catalog) else IDENTIFIERS.quote(value))


def _doubled(text: str) -> str:
    return text.replace("%", "%%")


def written(query: Query) -> str:
    """As a person may run it; one without parameters."""
    return query.replace("%%", "%")

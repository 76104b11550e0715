"""Our statements in the driver's form: it inserts the parameters itself, by %(name)s."""

from typing import Any

from pgqueue_admin.dialects.mysql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.text_composer import composed


class Query(str):
    """A statement from a file with its identifiers in place; every literal % in it is doubled."""

    __slots__ = ()


class BoundedQuery(Query):
    """A query with a lock timeout: ``wait`` sets it, with the query's parameters; ``as_before`` always resets it."""

    __slots__ = ("as_before", "wait")

    wait: Query
    as_before: Query


def compose(text: str, identifiers: dict[str, Any]) -> Query:
    """Fill ``{names}``: an Address as schema.table, a text as one identifier, a number or a Statement unchanged."""
    return Query(
        composed(
            text,
            identifiers,
            lambda table: _doubled(IDENTIFIERS.table(table)),
            lambda name: _doubled(IDENTIFIERS.quote(name)),
        )
    )


def _doubled(text: str) -> str:
    return text.replace("%", "%%")


def written(query: Query) -> str:
    """A statement without parameters, as a person can run it."""
    return query.replace("%%", "%")

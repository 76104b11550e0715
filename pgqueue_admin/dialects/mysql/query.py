"""Our statements as the driver takes them: it puts the parameters in itself, by %(name)s."""

import re
from typing import Any

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.mysql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.statements import Statement

_PLACE = re.compile(r"\{(\w+)\}")


class Query(str):
    """A statement from a file with its identifiers in place; every literal % in it is doubled."""

    __slots__ = ()


class BoundedQuery(Query):
    """One that waits for a lock no longer than ``wait`` says, with its parameters; ``as_before`` is asked always."""

    __slots__ = ("as_before", "wait")

    wait: Query
    as_before: Query


def compose(text: str, identifiers: dict[str, Any]) -> Query:
    """Fill ``{names}``: an Address as schema.table, a text as one identifier, a number or a Statement as it stands."""

    def placed(place: re.Match[str]) -> str:
        value = identifiers[place[1]]
        if isinstance(value, Statement):
            return value.text
        if isinstance(value, int):
            return str(value)
        return (IDENTIFIERS.table(value) if isinstance(value, Address) else IDENTIFIERS.quote(value)).replace("%", "%%")

    return Query(_PLACE.sub(placed, text))


def written(query: Query) -> str:
    """As a person may run it; one without parameters."""
    return query.replace("%%", "%")

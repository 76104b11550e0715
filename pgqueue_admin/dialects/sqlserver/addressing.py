"""How SQL Server endpoints write and read a queue address: ``table@[schema]@[catalog]`` (wire sheet 10.2)."""

import re
from functools import lru_cache
from typing import NamedTuple

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.sqlserver.identifiers import IDENTIFIERS

_PART = re.compile(r"@(\[(?:[^\]]|\]\])*\]|[^@\[\]]+)", re.DOTALL)
_PARTS = re.compile(r"([^@]+)((?:@(?:\[(?:[^\]]|\]\])*\]|[^@\[\]]+)){0,2})", re.DOTALL)


class Place(NamedTuple):
    """``catalog``: the database; empty for the session's own."""

    schema: str
    catalog: str = ""

    def __str__(self) -> str:
        """The form in ``Address.schema``: the plain schema, or schema and catalog in brackets for another catalog."""
        if not self.catalog and not self.schema.startswith("["):
            return self.schema
        return "@".join(quote(part) for part in self if part)


@lru_cache(maxsize=4096)
def place(schema: str) -> Place:
    """Parse ``dbo`` or ``[dbo]@[catalog]``. Raises AddressUnreadable."""
    if not schema.startswith("["):
        return Place(schema)
    parts = _parts(f"x@{schema}")
    return Place(*parts[1:])


def quote(name: str) -> str:
    """Quote in brackets. Raises AddressUnreadable if SQL Server would refuse the name."""
    return IDENTIFIERS.quote(name)


@lru_cache(maxsize=4096)
def qualified(address: Address) -> str:
    """The table in a statement: ``[catalog].[schema].[table]``. Raises AddressUnreadable."""
    return f"{catalog(address)}{quote(place(address.schema).schema)}.{quote(_table(address))}"


@lru_cache(maxsize=4096)
def catalog(address: Address) -> str:
    """Prefix of ``sys.columns`` for a table in another database: ``[catalog].``, else empty."""
    name = place(address.schema).catalog
    return f"{quote(name)}." if name else ""


@lru_cache(maxsize=4096)
def canonical(address: Address, catalog: str) -> str:
    """``catalog``: the DSN's, for an address that names none. Raises AddressUnreadable."""
    where = place(address.schema)
    parts = [_table(address), quote(where.schema), *([quote(name)] if (name := where.catalog or catalog) else [])]
    return "@".join(parts)


@lru_cache(maxsize=4096)
def parse(text: str, default_schema: str, catalog: str) -> Address:
    """``catalog``: the DSN's, omitted from the address. Raises AddressUnreadable."""
    table, *more = _parts(text)
    default = place(default_schema)
    found = Place(*more) if more else default
    if len(more) == 1:
        found = found._replace(catalog=default.catalog)
    if found.catalog == catalog:
        found = Place(found.schema)
    address = Address(str(found), table)
    qualified(address)
    return address


def _parts(text: str) -> list[str]:
    """A table is never in brackets; a schema or catalog may be, and can then contain any character."""
    found = _PARTS.fullmatch(text)
    if not found:
        raise AddressUnreadable(f"{text!r} names no queue table: write table@[schema]@[catalog], or a table alone")
    return [found[1], *(_unbracketed(part) for part in _PART.findall(found[2]))]


def _unbracketed(part: str) -> str:
    return part[1:-1].replace("]]", "]") if part.startswith("[") else part


def _table(address: Address) -> str:
    if "@" in address.table:
        raise AddressUnreadable(f"the name {address.table!r} holds @, which ends the table in an address")
    quote(address.table)  # addresses have it without brackets, but the name must be valid
    return address.table

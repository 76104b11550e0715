"""How PostgreSQL endpoints write and read a queue address (wire sheet 1.4)."""

import re
from functools import lru_cache

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressUnreadable

_FIRST_DOT_OUTSIDE_QUOTES = re.compile(r'^((?:[^".]|"[^"]*")*)\.(.*)$', re.DOTALL)


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def unquote(part: str) -> str:
    """Remove quotes only if a part both starts and ends with one; anything else is the name itself."""
    if len(part) >= 2 and part.startswith('"') and part.endswith('"'):
        return part[1:-1].replace('""', '"')
    return part


@lru_cache(maxsize=4096)
def canonical(address: Address) -> str:
    return f"{quote(address.schema)}.{quote(address.table)}"


@lru_cache(maxsize=4096)
def parse(text: str, default_schema: str) -> Address:
    """Split at the first dot outside quotes; without one the text is a table of the default schema."""
    split = _FIRST_DOT_OUTSIDE_QUOTES.match(text)
    schema, table = (unquote(split[1]), unquote(split[2])) if split else (default_schema, unquote(text))
    if not schema or not table or "\0" in text:
        raise AddressUnreadable(f'{text!r} names no queue table: write "schema"."table", or a table alone')
    return Address(schema, table)

"""The alias of a database that is looked at beside the first: it stands before the schema, ``billing:public``."""

import re

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressUnreadable

# lower case: environment variables have no other, and two that differ by capitals would be one to a reader
ALIAS = re.compile(r"[a-z][a-z0-9_]{0,29}")


def named(alias: str, address: Address) -> Address:
    return Address(f"{alias}:{address.schema}", address.table)


def native(alias: str, address: Address) -> Address:
    """Without the alias. Raises AddressUnreadable where the address is of another database: its names mean nothing."""
    before, _, schema = address.schema.partition(":")
    if before != alias or not schema:
        raise AddressUnreadable(f"{address.schema}.{address.table} is no table of the database {alias}")
    return Address(schema, address.table)


def alias_of(address: Address) -> str:
    """Of which other database it is; empty: of the first."""
    before, said, schema = address.schema.partition(":")
    return before if said and schema and ALIAS.fullmatch(before) else ""

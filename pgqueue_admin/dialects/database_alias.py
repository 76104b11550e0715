"""The alias of a database monitored beside the first one: a prefix of the schema, ``billing:public``."""

import re

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressUnreadable

# lower case: it comes from a variable's name, and aliases that differ in case alone would confuse readers
ALIAS = re.compile(r"[a-z][a-z0-9_]{0,29}")


def named(alias: str, address: Address) -> Address:
    return Address(f"{alias}:{address.schema}", address.table)


def native(alias: str, address: Address) -> Address:
    """Remove the alias. Raises AddressUnreadable if the address belongs to another database."""
    before, _, schema = address.schema.partition(":")
    if before != alias or not schema:
        raise AddressUnreadable(f"{address.schema}.{address.table} is no table of the database {alias}")
    return Address(schema, address.table)


def alias_of(address: Address) -> str:
    """The alias of the address's database; empty for the first one."""
    before, said, schema = address.schema.partition(":")
    return before if said and schema and ALIAS.fullmatch(before) else ""

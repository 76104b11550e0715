"""How SQL Server endpoints write and read an address (wire sheet 10.2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.dialects import Address, dialect_for
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer, sqlserver
from pgqueue_admin.transport.wire.addresses import Addressing

SHOP: Any = SQLServer("shop")
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=128).filter(
    lambda n: "$(" not in n
)


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("Sales", "dbo", "Sales"),
        ("My.Error.Queue", "dbo", "My.Error.Queue"),
        ("[Sales]", "dbo", "[Sales]"),
        ("Sales@[ops]", "ops", "Sales"),
        ("Sales@ops", "ops", "Sales"),
        ("Sales@[dbo]@[shop]", "dbo", "Sales"),
        ("Sales@dbo@shop", "dbo", "Sales"),
        ("Sales@[dbo]@[archive]", "[dbo]@[archive]", "Sales"),
        ("Sales@[a]]b@c]@[d.e]", "[a]]b@c]@[d.e]", "Sales"),
    ],
)
def test_read(text: str, schema: str, table: str) -> None:
    assert SHOP.parse_address(text) == Address(schema, table)


@pytest.mark.parametrize(
    "text",
    [
        *("", "@dbo", "Sales@", "Sales@[dbo", "Sales@dbo]", "Sales@[a]b]", "Sales@a@b@c", "Sales@@b"),
        *("s" * 129, f"Sales@[{'s' * 129}]", f"Sales@[dbo]@[{'c' * 129}]", "a\0b"),
    ],
)
def test_not_an_address(text: str) -> None:
    with pytest.raises(AddressUnreadable):
        SHOP.parse_address(text)


@pytest.mark.parametrize("table", ["a@b", "t" * 129, ""])
def test_no_table_has_such_a_name(table: str) -> None:
    address = Address("dbo", table)
    with pytest.raises(AddressUnreadable):
        SHOP.canonical(address)
    with pytest.raises(AddressUnreadable):
        SHOP.queue_store(address)


@pytest.mark.parametrize(
    ("schema", "canonical", "qualified"),
    [
        ("dbo", "Sa]les@[dbo]@[shop]", "[dbo].[Sa]]les]"),
        ("a]b", "Sa]les@[a]]b]@[shop]", "[a]]b].[Sa]]les]"),
        ("[dbo]@[archive]", "Sa]les@[dbo]@[archive]", "[archive].[dbo].[Sa]]les]"),
    ],
)
def test_written_for_others_and_for_the_server(schema: str, canonical: str, qualified: str) -> None:
    address = Address(schema, "Sa]les")
    assert SHOP.canonical(address) == canonical
    assert SHOP.queue.purge(table=address, most=1).split(" from ")[1].startswith(f"{qualified} with")


def test_without_a_catalog_none_is_written() -> None:
    assert sqlserver().canonical(Address("dbo", "Sales")) == "Sales@[dbo]"


@given(NAMES, NAMES, NAMES.filter(lambda name: "@" not in name))
def test_an_address_comes_back_from_its_canonical_form(catalog: str, schema: str, table: str) -> None:
    address = SHOP.parse_address(f"{table}@[{schema.replace(']', ']]')}]@[{catalog.replace(']', ']]')}]")
    assert address.table == table
    assert SHOP.parse_address(SHOP.canonical(address), "elsewhere") == address


def test_queue_setting_overrides_the_address_and_that_the_default() -> None:
    """Wire sheet 10.2; each with its catalog."""
    addressing = Addressing(SHOP, "[house]@[main]", {"Sales": "[ops]@[archive]", "Plain": "ops"})
    resolved = [addressing.resolve(text) for text in ("Sales@[x]@[y]", "Plain", "Other@[x]@[y]", "Other@[x]", "Other")]
    assert [address.schema for address in resolved] == [
        "[ops]@[archive]",
        "ops",
        "[x]@[y]",
        "[x]@[main]",
        "[house]@[main]",
    ]
    assert addressing.canonical(addressing.own("Sales")) == "Sales@[ops]@[archive]"


def test_the_urls_catalog_is_the_addresses() -> None:
    assert dialect_for("mssql://sa:x@host/shop").canonical(Address("dbo", "Sales")) == "Sales@[dbo]@[shop]"
    with pytest.raises(ValueError, match="names no database"):
        dialect_for("mssql://sa:x@host")

"""Table names and their limit (T1; wire sheet 1.4)."""

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressNotUnderstood
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.addresses import name_faults, resolve, table_name


def test_tables_of_a_logical_address():
    assert table_name("Sales") == "Sales"
    assert table_name("Sales", "Delayed") == "Sales.Delayed"
    assert table_name("Sales", discriminator="eu-1") == "Sales.eu-1"


@pytest.mark.parametrize("name", ["S" * 47, "é" * 23])
def test_47_bytes_start(name):
    assert name_faults(postgresql(), name) == []


@pytest.mark.parametrize(("name", "excess"), [("S" * 48, 1), ("é" * 24, 1), ("S" * 60, 13)])
def test_48_bytes_do_not(name, excess):
    (fault,) = name_faults(postgresql(), name)
    assert f"{excess} bytes too long" in fault
    assert "55" in fault


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_names_that_are_none(name):
    assert len(name_faults(postgresql(), name)) == 1


def test_destinations_are_read_as_an_endpoint_reads_them():
    dialect = postgresql()
    assert resolve(dialect, "Billing", "public") == Address("public", "Billing")
    assert resolve(dialect, '"Legacy"."Invoicing"', "public") == Address("Legacy", "Invoicing")
    assert resolve(dialect, "My.Error.Queue", "public") == Address("My", "Error.Queue")
    assert resolve(dialect, Address("a", "b.c"), "public") == Address("a", "b.c")
    with pytest.raises(AddressNotUnderstood):
        resolve(dialect, "", "public")

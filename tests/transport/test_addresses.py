"""Table names and their limit (T1; wire sheet 1.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.wire.addresses import Addressing, name_faults, queue_faults, table_name


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
    plain = Addressing(postgresql(), "public")
    assert plain.resolve("Billing") == Address("public", "Billing")
    assert plain.resolve('"Legacy"."Invoicing"') == Address("Legacy", "Invoicing")
    assert plain.resolve("My.Error.Queue") == Address("My", "Error.Queue")
    assert plain.resolve(Address("a", "b.c")) == Address("a", "b.c")
    with pytest.raises(AddressUnreadable):
        plain.resolve("")


def bare(part: str) -> str:
    return part[1:-1].replace('""', '"') if len(part) > 1 and part[0] == part[-1] == '"' else part


@given(st.text('".aB é', max_size=12))
def test_any_address_is_split_at_the_first_dot_outside_quotes(text):
    """Letter by letter, as the original goes: a dot is outside where the quotes before it are even in number."""
    at = next((n for n, letter in enumerate(text) if letter == "." and text[:n].count('"') % 2 == 0), None)
    schema, table = ("public", bare(text)) if at is None else (bare(text[:at]), bare(text[at + 1 :]))
    plain = Addressing(postgresql(), "public")
    if schema and table:
        assert plain.resolve(text) == Address(schema, table)
    else:
        with pytest.raises(AddressUnreadable):
            plain.resolve(text)


def test_a_schema_given_for_a_queue_wins():
    """Over the address's own, and by the name without quotes, so that quoting it changes nothing."""
    given = Addressing(postgresql(), "public", {"error": "ops", "My.Queue": "Mine"})
    assert given.resolve("error") == given.resolve('"error"') == given.resolve('"else"."error"') == ("ops", "error")
    assert given.resolve('"My.Queue"') == given.own("My.Queue") == ("Mine", "My.Queue")
    assert given.resolve("Errors") == given.own("Errors") == ("public", "Errors")
    assert given.resolve(Address("public", "error")) == ("public", "error")


def test_queues_of_the_settings_must_fit_and_be_read():
    plain = Addressing(postgresql(), "public")
    assert queue_faults(plain, "error_queue", "e" * 55) == []
    (fault,) = queue_faults(plain, "error_queue", '"ops"."' + "é" * 28 + '"')
    assert "error_queue" in fault
    assert "1 bytes too long" in fault
    (fault,) = queue_faults(plain, "error_queue", "ops.")
    assert "names no queue table" in fault


def test_an_instance_has_to_fit_as_well():
    assert name_faults(postgresql(), "Sales", "n" * 49) == []
    (fault,) = name_faults(postgresql(), "Sales", "n" * 50)
    assert "1 bytes too long" in fault

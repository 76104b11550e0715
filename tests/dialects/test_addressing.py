"""How PostgreSQL endpoints write addresses (wire sheet 1.4)."""

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import postgresql


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("Sales", "public", "Sales"),
        ('"Sales"', "public", "Sales"),
        ("My.Error.Queue", "My", "Error.Queue"),
        ('"My.Error.Queue"', "public", "My.Error.Queue"),
        ('"Legacy"."Invoicing.Delayed"', "Legacy", "Invoicing.Delayed"),
        ("ops.errors", "ops", "errors"),
        ('a"b', "public", 'a"b'),
        ('"a""b"."c""d"', 'a"b', 'c"d'),
        ('"""quoted"""', "public", '"quoted"'),
        ("Zażółć gęślą", "public", "Zażółć gęślą"),
        ("<script>alert(1)</script>", "public", "<script>alert(1)</script>"),
        ('"a\nb"."c; drop table x --"', "a\nb", "c; drop table x --"),
    ],
)
def test_read(text: str, schema: str, table: str) -> None:
    assert postgresql().parse_address(text) == Address(schema, table)


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", '""', '""."a"', "a\0b"])
def test_not_an_address(text: str) -> None:
    with pytest.raises(AddressUnreadable):
        postgresql().parse_address(text)


def test_the_default_schema_is_the_callers() -> None:
    assert postgresql().parse_address("Sales", "shop") == Address("shop", "Sales")
    assert postgresql().canonical(Address("shop", 'Sa"les')) == '"shop"."Sa""les"'

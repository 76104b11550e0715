"""The address of a queue table: schema and name. Its text form belongs to the dialect."""

from typing import NamedTuple


class Address(NamedTuple):
    """A table by schema and name, both exactly as the catalog has them (wire sheet 1.4).

    A dialect that reaches other catalogs in one session writes the catalog into ``schema`` (sqlserver/addressing.py).
    """

    schema: str
    table: str

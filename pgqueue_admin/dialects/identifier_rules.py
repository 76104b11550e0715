"""Rules of a database for identifiers and string literals, and for names of outbox tables (outbox sheet 2)."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressUnreadable

_NEVER = frozenset("[]`")  # the original rejects a prefix with one of these


@dataclass(frozen=True, slots=True)
class IdentifierRules:
    """``quotes``: opening and closing; names double the closing one. ``forbidden``: texts not allowed in names."""

    quotes: str
    longest: int
    default_schema: str = ""
    longest_schema: int = 0  # 0: as ``longest``
    in_bytes: bool = False
    longest_prefix: int | None = None
    suffix: str = "OutboxData"
    derived: int = 0  # by how much the longest name derived from the table's exceeds it
    upper_case_ascii: bool = False
    only_bmp: bool = False
    forbidden: tuple[str, ...] = ()
    text_quote: str = "'"
    backslashes: Literal["plain", "marked", "hex"] = "plain"  # in a literal: as they are, in E'', or in hexadecimal

    def quote(self, name: str, longest: int = 0) -> str:
        """Quote a name. Raises AddressUnreadable if the database would refuse, truncate or misread it."""
        self._insist(name, longest or self.longest)
        opening, closing = self.quotes[0], self.quotes[1]
        return f"{opening}{name.replace(closing, closing * 2)}{closing}"

    def table(self, address: Address) -> str:
        schema = f"{self.quote(address.schema, self.longest_schema)}." if address.schema else ""
        return schema + self.quote(address.table)

    def text(self, value: str) -> str:
        """A string literal that is valid with any server settings."""
        if "\\" in value and self.backslashes == "hex":
            return f"convert(x'{value.encode().hex()}' using utf8mb4)"
        if "\\" in value and self.backslashes == "marked":
            return "E'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        return self.text_quote + value.replace("'", "''") + "'"

    def outbox_table(self, endpoint: str, prefix: str | None) -> str:
        """Name of an outbox table by the original's rule, so that both share it. Raises AddressUnreadable."""
        start = endpoint.replace(".", "_") + "_" if prefix is None else prefix
        cure = "give a shorter or plainer one, outbox=Outbox(prefix=…) or --prefix"
        if self.longest_prefix is not None and len(start) > self.longest_prefix:
            said = f"has {len(start)} characters, and {self.longest_prefix} are allowed"
            raise AddressUnreadable(f"the prefix {start!r} of the outbox table {said}: {cure}")
        if found := _NEVER.intersection(start):
            raise AddressUnreadable(f"the prefix {start!r} of the outbox table holds {min(found)}: {cure}")
        if self.upper_case_ascii and not start.isascii():
            raise AddressUnreadable(f"the prefix {start!r} of the outbox table is not ASCII: {cure}")
        name = (start.upper() if self.upper_case_ascii else start) + self.suffix
        self._insist(name, self.longest - self.derived)
        return name

    def _insist(self, name: str, longest: int) -> None:
        length = len(name.encode(errors="replace")) if self.in_bytes else len(name)
        if not name or length > longest:
            unit = "bytes" if self.in_bytes else "characters"
            raise AddressUnreadable(f"the name {name!r} has {length} {unit}: there must be some, and at most {longest}")
        if any(unicodedata.category(each) in ("Cc", "Cs") for each in name):
            raise AddressUnreadable(f"the name {name!r} holds a control character")
        if found := [each for each in self.forbidden if each in name]:
            raise AddressUnreadable(f"the name {name!r} holds {found[0]}")
        if self.only_bmp and any(ord(each) > 0xFFFF for each in name):
            raise AddressUnreadable(f"the name {name!r} holds a character that names cannot have there")

"""Databases that are not in UTF-8: a letter that theirs does not have goes in as JSON writes it, ``\\u20ac``.

In headers that is the same text; elsewhere it can be read, and no row is refused for it.
"""

import codecs
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.string import StrBinaryDumper

_TAKES_ALL = ("UTF8", "SQL_ASCII")
_NAMED_OTHERWISE = {"KOI8R": "koi8-r", "KOI8U": "koi8-u"}
_AS_JSON = "pgqueue_as_json"


def fit(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Have the texts of this session fit its database."""
    if found := codec(raw):
        for dumper in (_Text, _BinaryText):
            raw.adapters.register_dumper(str, type(dumper.__name__, (dumper,), {"codec": found}))
    return raw


def codec(raw: psycopg.Connection[Any]) -> str:
    """Of a database that does not take every text, else empty; what Python does not know takes ASCII for certain."""
    name = raw.info.parameter_status("server_encoding") or _TAKES_ALL[0]
    if name in _TAKES_ALL:
        return ""
    try:
        return codecs.lookup(_NAMED_OTHERWISE.get(name, name.replace("WIN", "cp"))).name
    except LookupError:
        return "ascii"


def fitted(text: str, codec: str) -> str:
    return text if text.isascii() else text.encode(codec, _AS_JSON).decode(codec)


def _as_json(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)), error.end


codecs.register_error(_AS_JSON, _as_json)


class _Text(Dumper):
    codec: str

    def dump(self, text: str) -> bytes:
        return fitted(text, self.codec).encode()


class _BinaryText(_Text):
    format = Format.BINARY
    oid = StrBinaryDumper.oid

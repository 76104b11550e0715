"""Databases with encodings other than UTF-8: characters that they lack are written as JSON escapes, ``\\u20ac``.

In headers, which are JSON, that means the same; elsewhere it is readable, and no row is refused.
"""

import codecs
import json
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.string import StrBinaryDumper

_TAKES_ALL = ("UTF8", "SQL_ASCII")
_NAMED_OTHERWISE = {"KOI8R": "koi8-r", "KOI8U": "koi8-u"}
_AS_JSON, _IN_JSON = "pgqueue_as_json", "pgqueue_in_json"


def fit(raw: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Make the session send texts in the database's encoding."""
    if found := codec(raw):
        for dumper in (_BinaryText, _Text):  # the last is the default: the server decides the type
            raw.adapters.register_dumper(str, type(dumper.__name__, (dumper,), {"codec": found}))
    return raw


def codec(raw: psycopg.Connection[Any]) -> str:
    """Codec of a database that cannot store every text, else empty; ASCII for encodings unknown to Python."""
    name = raw.info.parameter_status("server_encoding") or _TAKES_ALL[0]
    if name in _TAKES_ALL:
        return ""
    try:
        return codecs.lookup(_NAMED_OTHERWISE.get(name, name.replace("WIN", "cp"))).name
    except LookupError:
        return "ascii"


def fitted(text: str, codec: str) -> str:
    return text if text.isascii() else text.encode(codec, _AS_JSON).decode(codec)


def json_text(value: Any, codec: str) -> str:
    """JSON for the server, which refuses an escape of a character that it lacks: so characters are not escaped.

    Characters that its encoding lacks become as in ``fitted``.
    """
    text = json.dumps(value, ensure_ascii=False)
    return text.encode(codec, _IN_JSON).decode(codec) if codec else text


def _as_json(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)), error.end


def _in_json(error: UnicodeError) -> tuple[str, int]:
    """Escape a character inside a JSON string, where a backslash is written twice."""
    said, end = _as_json(error)
    return said.replace("\\", "\\\\"), end


codecs.register_error(_AS_JSON, _as_json)
codecs.register_error(_IN_JSON, _in_json)


class _Text(Dumper):
    codec: str

    def dump(self, text: str) -> bytes:
        return fitted(text, self.codec).encode()


class _BinaryText(_Text):
    format = Format.BINARY
    oid = StrBinaryDumper.oid

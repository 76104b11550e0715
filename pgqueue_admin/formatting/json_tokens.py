"""Tokens of a JSON text, as written: numbers are not parsed, and strings are decoded only on request."""

import json
import re

# An unterminated string takes the rest; anything that is no JSON token is a word.
TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
WORD = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class NotJson(ValueError):
    """The text is no valid JSON, so no path in it is certain."""


def is_text(token: str) -> bool:
    return token.startswith('"')


def text_of(token: str) -> str:
    """Decode a JSON string. Raises NotJson."""
    try:
        found = json.loads(token, strict=False)
    except ValueError as error:
        raise NotJson from error
    if not isinstance(found, str):
        raise NotJson
    return found

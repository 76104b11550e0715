"""Tokens of a JSON text, as they were written: no number is parsed, and a text is read only where it is asked for."""

import json
import re

# A string that never ends takes the rest; whatever is no token of JSON is a word and stays a word.
TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
WORD = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class NotJson(ValueError):
    """A text in which no path leads anywhere for certain."""


def is_text(token: str) -> bool:
    return token.startswith('"')


def text_of(token: str) -> str:
    """What a text of JSON says. Raises NotJson."""
    try:
        found = json.loads(token, strict=False)
    except ValueError as error:
        raise NotJson from error
    if not isinstance(found, str):
        raise NotJson
    return found

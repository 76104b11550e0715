"""A filter box as it is typed: words, and ``field:value``. Every list that filters what it has reads it alike."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_TERM = re.compile(r'(?:(?P<field>[a-z]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')


@dataclass
class FilterTerms:
    """What was typed, in small letters. ``faults`` are said under the box; nothing is silently widened."""

    text: str
    words: list[str] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def read(text: str, names: Sequence[str]) -> FilterTerms:
    """``names`` are the fields that there are."""
    found = FilterTerms(text.strip())
    for term in _TERM.finditer(found.text):
        name, value = term["field"], term["quoted"] if term["quoted"] is not None else term["plain"]
        if name in names:
            found.fields.append((name, value.lower()))
        elif name:
            found.faults.append(f"There is no field {name}:. Use one of {', '.join(f'{each}:' for each in names)}")
        else:
            found.words.append(value.lower())
    return found

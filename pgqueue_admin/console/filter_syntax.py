"""The syntax of filter boxes: words, and ``field:value``. Every list that filters its own rows uses it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

_TERM = re.compile(r'(?:(?P<field>[a-z]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')


@dataclass
class FilterTerms:
    """A parsed filter, terms in lower case. ``faults`` are shown under the box: an error never widens the result."""

    text: str
    words: list[str] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def read(text: str, names: Sequence[str]) -> FilterTerms:
    """``names`` are the fields that the list has."""
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

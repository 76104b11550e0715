"""The filter box of the list: words that names contain, and ``kind:``, ``state:``, ``schema:``."""

import re
from dataclasses import dataclass, field

from pgqueue_admin.console.board.rows import Row

_TERM = re.compile(r'(?:(?P<field>[a-z]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>\S+))')
FIELDS = ("kind", "state", "schema")
STATES = {"critical": "crit", "warning": "warn", "ok": ""}


@dataclass
class Filter:
    """What was typed, as it is understood. ``faults`` are said under the box; nothing is silently widened."""

    text: str
    words: list[str] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def matches(self, row: Row) -> bool:
        named = all(word in row.address.table.lower() for word in self.words)
        return named and all(_holds(name, value, row) for name, value in self.fields)


def read(text: str) -> Filter:
    found = Filter(text.strip())
    for term in _TERM.finditer(found.text):
        name, value = term["field"], term["quoted"] if term["quoted"] is not None else term["plain"]
        if name in FIELDS:
            found.fields.append((name, value.lower()))
        elif name:
            found.faults.append(f"{name}: is no field here. Try {', '.join(f'{each}:' for each in FIELDS)}")
        else:
            found.words.append(value.lower())
    wrong = [value for name, value in found.fields if name == "state" and value not in STATES]
    found.faults += [f"state:{value} is none. Try {', '.join(f'state:{each}' for each in STATES)}" for value in wrong]
    return found


def _holds(name: str, value: str, row: Row) -> bool:
    if name == "state":
        return row.state == STATES.get(value)
    return value == (row.queue.kind if name == "kind" else row.address.schema.lower())

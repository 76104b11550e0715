"""The filter box of the list: words that names contain, and ``kind:``, ``state:``, ``schema:``."""

from dataclasses import dataclass

from pgqueue_admin.console import terms
from pgqueue_admin.console.board.rows import Row
from pgqueue_admin.monitor.tables import Kind

FIELDS = ("kind", "state", "schema")
STATES = {"critical": "crit", "warning": "warn", "paused": "paused", "ok": ""}
CHOICES = {"state": [*STATES], "kind": [kind.value for kind in Kind]}


@dataclass
class Filter(terms.Terms):
    """Which queues are wanted."""

    def matches(self, row: Row) -> bool:
        named = all(word in row.address.table.lower() for word in self.words)
        return named and all(_holds(name, value, row) for name, value in self.fields)


def read(text: str) -> Filter:
    typed = terms.read(text, FIELDS)
    faults = [
        f"There is no {name}:{value}. Try {', '.join(f'{name}:{each}' for each in CHOICES[name])}"
        for name, value in typed.fields
        if value not in CHOICES.get(name, [value])
    ]
    return Filter(typed.text, typed.words, typed.fields, typed.faults + faults)


def _holds(name: str, value: str, row: Row) -> bool:
    if name == "state":
        return row.state == STATES.get(value)
    return value == (row.queue.kind if name == "kind" else row.address.schema.lower())

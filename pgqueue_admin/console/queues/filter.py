"""The filter box of the list: words that names contain, and ``kind:``, ``state:``, ``schema:``."""

from dataclasses import dataclass

from pgqueue_admin.console import terms
from pgqueue_admin.console.board.rows import Row

FIELDS = ("kind", "state", "schema")
STATES = {"critical": "crit", "warning": "warn", "ok": ""}


@dataclass
class Filter(terms.Terms):
    """Which queues are wanted."""

    def matches(self, row: Row) -> bool:
        named = all(word in row.address.table.lower() for word in self.words)
        return named and all(_holds(name, value, row) for name, value in self.fields)


def read(text: str) -> Filter:
    typed = terms.read(text, FIELDS)
    wrong = [value for name, value in typed.fields if name == "state" and value not in STATES]
    faults = [f"There is no state:{value}. Try {', '.join(f'state:{each}' for each in STATES)}" for value in wrong]
    return Filter(typed.text, typed.words, typed.fields, typed.faults + faults)


def _holds(name: str, value: str, row: Row) -> bool:
    if name == "state":
        return row.state == STATES.get(value)
    return value == (row.queue.kind if name == "kind" else row.address.schema.lower())

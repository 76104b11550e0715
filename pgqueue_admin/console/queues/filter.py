"""The filter box of the list: words that names contain, and ``kind:``, ``state:``, ``schema:``."""

from dataclasses import dataclass

from pgqueue_admin.console import filter_syntax
from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.monitor.queue_table import TableKind

FIELDS = ("kind", "state", "schema")
STATES = {"critical": "crit", "warning": "warn", "paused": "paused", "ok": ""}
CHOICES = {"state": [*STATES], "kind": [kind.value for kind in TableKind]}


@dataclass
class QueueFilter(filter_syntax.FilterTerms):
    """Which queues are wanted."""

    def matches(self, row: QueueRow) -> bool:
        named = all(word in row.address.table.lower() for word in self.words)
        return named and all(_holds(name, value, row) for name, value in self.fields)


def read(text: str) -> QueueFilter:
    typed = filter_syntax.read(text, FIELDS)
    faults = [
        f"There is no {name}:{value}. Try {', '.join(f'{name}:{each}' for each in CHOICES[name])}"
        for name, value in typed.fields
        if value not in CHOICES.get(name, [value])
    ]
    return QueueFilter(typed.text, typed.words, typed.fields, typed.faults + faults)


def _holds(name: str, value: str, row: QueueRow) -> bool:
    if name == "state":
        return row.state == STATES.get(value)
    return value == (row.queue.kind if name == "kind" else row.address.schema.lower())

"""A queue's table lacks a column or an index: receiving or sending there is slow, or fails.

First step: Have the table's owner run the statement that the warning shows.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for each in look.faulty_tables or []:
        first = each.faults[0]
        said = warnings.table_fault(first.said, first.cure, len(each.faults) - 1)
        yield Finding("table_fault", each.table, said, queue=each.table)


def is_known(look: AlertSnapshot) -> bool:
    return look.faulty_tables is not None


KIND = AlertKind("table_fault", "table not as it must be", find, can_tell=is_known)

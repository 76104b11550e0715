"""Transactions over several databases that are prepared and that nobody ends: they hold locks until somebody does."""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.monitor.in_doubt import LATE, MOST


def find(look: AlertSnapshot) -> Iterator[Finding]:
    late = [each for each in look.in_doubt or [] if each.is_late]
    if not late:
        return
    waiting = sum(each.waiting for each in late)
    tables = sorted({table for each in late for table in each.tables})
    oldest = max(each.age for each in late).total_seconds()
    said = warnings.transaction_in_doubt(len(late), MOST, oldest, LATE.total_seconds(), waiting, tables)
    yield Finding("transaction_in_doubt", "queues' database", said, CRITICAL if waiting else WARNING)


def is_known(look: AlertSnapshot) -> bool:
    return look.in_doubt is not None


KIND = AlertKind("transaction_in_doubt", "transactions in doubt", find, can_tell=is_known)

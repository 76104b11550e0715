"""Transactions over several databases are prepared and not ended: they hold locks until somebody ends them.

First step: Start the endpoint that prepared them; look under *In doubt* on Outbox before you end one by hand.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.monitor.in_doubt import LATE, MOST, InDoubt, each_once

_BESIDE_QUEUES, _ELSEWHERE = "queues' database", "database "


def find(look: AlertSnapshot) -> Iterator[Finding]:
    """One finding per database queried."""
    elsewhere = look.outboxes_elsewhere.in_doubt if look.outboxes_elsewhere else []
    late = defaultdict[str, list[InDoubt]](list)
    for each in each_once([*(look.in_doubt or []), *elsewhere]):
        if each.is_late:
            late[each.alias].append(each)
    for alias, found in late.items():
        yield _found(f"{_ELSEWHERE}{alias}" if alias else _BESIDE_QUEUES, found)


def _found(subject: str, late: list[InDoubt]) -> Finding:
    tables = sorted({table for each in late for table in each.tables or ()})
    waiting = _waiting(late)
    oldest = max(each.age.total_seconds() for each in late if each.age)
    said = warnings.transaction_in_doubt(len(late), MOST, oldest, LATE.total_seconds(), waiting, tables)
    return Finding("transaction_in_doubt", subject, said, CRITICAL if waiting else WARNING)


def _waiting(late: list[InDoubt]) -> int:
    """Count sessions that wait, as far as servers report them; some report one number for all together."""
    shared = [each.waiting or 0 for each in late if each.prepared.is_shared]
    return sum(each.waiting or 0 for each in late if not each.prepared.is_shared) + max(shared, default=0)


def unknown(look: AlertSnapshot) -> Collection[str]:
    """Findings in a database that does not answer stay open."""
    open_now = look.open_subjects("transaction_in_doubt")
    return [each for each in open_now if look.is_outbox_away(each.removeprefix(_ELSEWHERE)) and each != _BESIDE_QUEUES]


def is_known(look: AlertSnapshot) -> bool:
    return look.in_doubt is not None


KIND = AlertKind("transaction_in_doubt", "transactions in doubt", find, can_tell=is_known, unknown=unknown)

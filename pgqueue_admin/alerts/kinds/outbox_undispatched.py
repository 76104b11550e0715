"""What a handler sent is committed and does not leave: its process ended in between, and nobody sends it."""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import HOVERING, AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models.queue_database import queue_database


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for state in look.outboxes or []:
        if state.is_stuck and state.age:
            whose = "ours" if state.endpoint else "relayed" if state.is_relayed else "foreign"
            said = warnings.outbox_undispatched(
                state.pending, state.age.total_seconds(), state.grace.total_seconds(), whose
            )
            subject = queue_database().dialect.canonical(state.address)
            yield Finding("outbox_undispatched", subject, said, CRITICAL if state.endpoint else WARNING)


def is_known(look: AlertSnapshot) -> bool:
    return look.outboxes is not None


KIND = AlertKind("outbox_undispatched", "sends left in an outbox", find, can_tell=is_known, linger=HOVERING)

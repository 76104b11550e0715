"""A handler's sends are committed but not dispatched: its process ended in between, and nothing sends them.

First step: Start the endpoint whose records they are, or send them on Outbox.
"""

from collections.abc import Collection, Iterator

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.alerts.kinds.kind import HOVERING, AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models.queue_database import queue_database


def find(look: AlertSnapshot) -> Iterator[Finding]:
    elsewhere = look.outboxes_elsewhere.states if look.outboxes_elsewhere else []
    for state in [*(look.outboxes or []), *elsewhere]:
        if state.is_stuck and state.age:
            whose = "ours" if state.endpoint else "relayed" if state.is_relayed else "foreign"
            whose = "elsewhere" if state.alias else whose
            said = warnings.outbox_undispatched(
                state.pending, state.age.total_seconds(), state.grace.total_seconds(), whose
            )
            subject = queue_database().dialect.canonical(state.address)
            yield Finding("outbox_undispatched", subject, said, CRITICAL if state.endpoint else WARNING)


def unknown(look: AlertSnapshot) -> Collection[str]:
    """Findings in a database that does not answer stay open."""
    return [each for each in look.open_subjects("outbox_undispatched") if look.is_outbox_away(_alias(each))]


def _alias(subject: str) -> str:
    """Return the alias before the schema in an address, ``"stock:public"."Billing_OutboxData"``."""
    before, said, _ = subject.removeprefix('"').partition(":")
    return before if said else ""


def is_known(look: AlertSnapshot) -> bool:
    return look.outboxes is not None


KIND = AlertKind(
    "outbox_undispatched", "sends left in an outbox", find, can_tell=is_known, unknown=unknown, linger=HOVERING
)

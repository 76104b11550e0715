"""A message was in flight at several crashes of a process: it never fails, and returns to the head each time.

First step: Move that message out from its warning; stop the endpoint first if it is in flight.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models.crashing_messages import LIMIT, CrashingMessage
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.wire.type_names import short_type


def find(look: AlertSnapshot) -> Iterator[Finding]:
    return (_found(each) for each in look.crashing)


def _found(each: CrashingMessage) -> Finding:
    kind = short_type(each.newest.message_type)
    said = warnings.crashing_message(kind, each.seq, each.count, each.alone, LIMIT - 1, each.newest.how)
    queue, subject = queue_database().dialect.canonical(each.address), str(each.row_id)
    return Finding(
        "crashing_message", subject, said, CRITICAL, queue=queue, count=each.count, since=each.first_at, told=0
    )


KIND = AlertKind("crashing_message", "crashing message", find, mailed=True, counts=True, threshold="limit")

"""A message was in hand at several deaths of a process: it never fails, and comes back to the head for ever."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import CRITICAL, Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.records.fatal import LIMIT, Fatal
from pgqueue_admin.records.source import source
from pgqueue_admin.transport.wire.type_names import short_type
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    return (_found(each) for each in look.fatal)


def _found(each: Fatal) -> Found:
    kind = short_type(each.newest.message_type)
    said = warnings.fatal_message(kind, each.seq, each.count, each.alone, LIMIT - 1, each.newest.how)
    queue, subject = source().dialect.canonical(each.address), str(each.row_id)
    return Found("fatal_message", subject, said, CRITICAL, queue=queue, count=each.count, since=each.first_at, told=0)


KIND = Kind("fatal_message", "fatal message", find, mailed=True, counts=True, threshold="limit")

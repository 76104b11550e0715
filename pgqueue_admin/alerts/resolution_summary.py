"""What became of the messages of a warning that is over: who decided on how many."""

from typing import Any

from pgqueue_admin.alerts.mail import subject
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.numbers import format_int
from pgqueue_admin.models import Alert
from pgqueue_admin.models.queue_database import queue_database

MOST = 3  # acts are named; a mail is no list of operations
WORDS = {"succeeded": "retried and succeeded", "dead_again": "retried and dead again"}


def of(alert: Alert) -> str:
    """A sentence without its point; "" where nothing is known: of several causes, or the archive cannot be read."""
    if alert.kind != "dead_message" or not alert.cause:
        return ""
    about = {"queue": alert.queue, "cause": alert.cause, "since": alert.opened_at, "most": MOST + 1}
    try:
        with queue_database().reading() as connection:
            acts = connection.all(queue_database().dialect.alerts.became(), about)
    except DatabaseError:
        return ""
    said = [*map(_said, acts[:MOST]), *(["more by others"] if len(acts) > MOST else [])]
    return f"What became of them: {'; '.join(said)}" if said else ""


def _said(act: Any) -> str:
    by = f" by {subject.one_line(act.who)}" if act.who else ""
    operation = f", operation {act.operation}" if act.operation else ""
    return f"{format_int(act.count)} {WORDS.get(act.became, act.became)}{by}{operation}"

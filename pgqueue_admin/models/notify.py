"""Wake-ups on the console's own database. They carry names, never data: listeners read the rows."""

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models.queue_database import console_dsn
from pgqueue_admin.models.raw_sql import run

ENDPOINT = "pgqueue_endpoint"  # payload: the endpoint's name
OPERATION = "pgqueue_operation"  # the operation's id
PROCESS = "pgqueue_process"  # the endpoint or role of a process whose state changed
SAMPLE = "pgqueue_sample"  # the sample's number
ALERT = "pgqueue_alert"


def announce(channel: str, payload: str = "") -> None:
    """NOTIFY on ``default``; inside ``atomic()`` it goes out with the commit."""
    run(postgresql().notify.announce(), {"channel": channel, "payload": payload})


def listen(*channels: str, application_name: str = "pgqueue-admin") -> Connection:
    """A session on ``default`` that listens to these channels."""
    answer_seconds = settings.PGQUEUE["ANSWER_SECONDS"]
    connection = postgresql().connect(console_dsn(), application_name=application_name, answer_seconds=answer_seconds)
    connection.listen(*channels)
    return connection

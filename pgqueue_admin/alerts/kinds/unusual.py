"""The newest hour of history is far from what is usual for its hour of the week."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.pipeline.judging import findings
from pgqueue_admin.transport.wire.type_names import short_type
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    """One for each way, queue and type; over with the first hour that is usual again."""
    inputs = {endpoint.name: look.address(endpoint) for endpoint in look.endpoints}
    for stretch in findings.lasting(look.now):
        row = stretch.worst
        queue = row.queue or inputs.get(row.endpoint, "")
        said = warnings.unusual(row.kind, short_type(row.type), row)
        cause = f"{row.kind} {row.type}".strip()
        yield Found("unusual", queue or row.endpoint, said, cause=cause, queue=queue, since=stretch.since)


KIND = Kind("unusual", "unusual", find)

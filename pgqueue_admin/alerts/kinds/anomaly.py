"""The newest hour of history is far from what is usual for that hour of the week.

First step: Open Trends at that hour; a deploy mark or a new failure beside it is the usual cause.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings
from pgqueue_admin.history.anomalies import findings
from pgqueue_admin.transport.wire.type_names import short_type


def find(look: AlertSnapshot) -> Iterator[Finding]:
    """One finding per way, queue and type; over with the first normal hour."""
    inputs = {endpoint.name: look.address(endpoint) for endpoint in look.endpoints}
    for stretch in findings.lasting(look.now):
        row = stretch.worst
        queue = row.queue or inputs.get(row.endpoint, "")
        said = warnings.unusual(row.kind, short_type(row.type), row)
        cause = f"{row.kind} {row.type}".strip()
        yield Finding("anomaly", queue or row.endpoint, said, cause=cause, queue=queue, since=stretch.since)


KIND = AlertKind("anomaly", "anomaly", find)

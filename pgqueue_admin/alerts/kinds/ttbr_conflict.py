"""T16: an endpoint peeks so rarely that messages expire unseen.

First step: Set the peek delay below the time to be received, or give the type a longer one.
"""

from collections.abc import Iterator
from dataclasses import replace

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for endpoint in look.endpoints:
        seen = look.ttbrs.get((endpoint.schema, endpoint.table), [])
        for found in peek_delay_rules.conflicts(endpoint, seen):
            yield replace(found, queue=look.address(endpoint))


KIND = AlertKind("ttbr_conflict", "TTBR conflict", find)

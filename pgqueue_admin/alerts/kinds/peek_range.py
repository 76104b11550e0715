"""T15: an endpoint's peek delay is below 100 ms or above 10 s.

First step: Set the peek delay to between 100 ms and 10 s.
"""

from collections.abc import Iterator
from dataclasses import replace

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for endpoint in look.endpoints:
        for found in peek_delay_rules.out_of_range(endpoint):
            yield replace(found, queue=look.address(endpoint))


KIND = AlertKind("peek_range", "peek delay out of range", find)

"""T16: an endpoint peeks so seldom that messages expire before they are looked at."""

from collections.abc import Iterator
from dataclasses import replace

from pgqueue_admin.alerts import peek
from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look


def find(look: Look) -> Iterator[Found]:
    for endpoint in look.endpoints:
        seen = look.ttbrs.get((endpoint.schema, endpoint.table), [])
        for found in peek.conflicts(endpoint, seen):
            yield replace(found, queue=look.address(endpoint))


KIND = Kind("ttbr_conflict", "TTBR conflict", find)

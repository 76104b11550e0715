"""T15: an endpoint's peek delay is below 100 ms or above 10 s."""

from collections.abc import Iterator
from dataclasses import replace

from pgqueue_admin.alerts import peek
from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look


def find(look: Look) -> Iterator[Found]:
    for endpoint in look.endpoints:
        for found in peek.out_of_range(endpoint):
            yield replace(found, queue=look.address(endpoint))


KIND = Kind("peek_range", "peek delay out of range", find)

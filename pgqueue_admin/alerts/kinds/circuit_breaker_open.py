"""A circuit breaker of an endpoint of ours is open: what it protects has failed for 30 s or longer.

First step: Read the error in the warning: repair the database or the network. Nothing is lost meanwhile.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    """One warning per endpoint and breaker, however many processes it is open in."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for process in look.processes:
        if look.hears_of(process):
            for breaker in process.breakers:
                found[process.endpoint, breaker["what"]].append(breaker)
    for (endpoint, what), breakers in found.items():
        longest = max(breakers, key=lambda breaker: float(breaker["seconds"]))
        said = warnings.circuit_breaker_open(what, len(breakers), float(int(longest["seconds"])), longest["error"])
        yield Finding("circuit_breaker_open", endpoint, said, CRITICAL, cause=what)


KIND = AlertKind("circuit_breaker_open", "circuit breaker open", find)

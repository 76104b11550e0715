"""The environment has no name, so a mail cannot say where it is from.

First step: Set `ENVIRONMENT`, for instance `production`.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    if not look.environment:
        yield Finding("unnamed_environment", "ENVIRONMENT", warnings.unnamed_environment())


KIND = AlertKind("unnamed_environment", "environment without a name", find)

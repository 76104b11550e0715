"""The environment has no name, so a mail cannot say where it is from."""

from collections.abc import Iterator

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.wording import warnings


def find(look: Look) -> Iterator[Found]:
    if not look.environment:
        yield Found("unnamed_environment", "ENVIRONMENT", warnings.unnamed_environment())


KIND = Kind("unnamed_environment", "environment without a name", find)

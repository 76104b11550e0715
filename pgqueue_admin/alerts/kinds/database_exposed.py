"""Others could have code of theirs run by the console: its role is a superuser, or they may create where it looks."""

from collections.abc import Iterable

from pgqueue_admin.alerts import exposure
from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look


def find(look: Look) -> Iterable[Found]:
    return look.exposed or []


def is_known(look: Look) -> bool:
    return look.exposed is not None


KIND = Kind(exposure.KIND, "database open to others' code", find, can_tell=is_known)

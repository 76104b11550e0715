"""Others could run their code as the console: its role is a superuser, or they may create objects on its search path.

First step: Run the statement that the warning shows; give the console a role that is no superuser.
"""

from collections.abc import Iterable

from pgqueue_admin.alerts import database_exposure
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot


def find(look: AlertSnapshot) -> Iterable[Finding]:
    return look.exposed or []


def is_known(look: AlertSnapshot) -> bool:
    return look.exposed is not None


KIND = AlertKind(database_exposure.KIND, "database open to others' code", find, can_tell=is_known)

"""``manage.py check``: the same warnings, from the same functions, for operators without the console."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import django.db
from django.conf import settings
from django.core.checks import CheckMessage, Error, Info
from django.core.checks import Warning as CheckWarning

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.alerts.connection_security import ConnectionRisk
from pgqueue_admin.alerts.connection_security import all_of_them as every_wire
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import mail_not_configured
from pgqueue_admin.alerts.mail import mail_settings
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.formatting import warnings
from pgqueue_admin.formatting.numbers import NBSP

if TYPE_CHECKING:
    from pgqueue_admin.models.queue_database import QueueDatabase

IDS = {
    "unnamed_environment": "pgqueue.W001",
    "mail_not_configured": "pgqueue.W002",
    "peek_range": "pgqueue.W003",
    "ttbr_conflict": "pgqueue.W004",
    "database_exposed": "pgqueue.W011",
}


def environment(**options: Any) -> list[CheckMessage]:
    """Check the environment. Needs no database."""
    box = mail_settings.configured()
    found = list(mail_not_configured.missing(box))
    if not box.environment:
        found.insert(0, Finding("unnamed_environment", "ENVIRONMENT", warnings.unnamed_environment()))
    return [said(each) for each in found]


def renamed_variables(**options: Any) -> list[CheckMessage]:
    """Environment variables under names that are no longer read. Needs no database."""
    return [
        CheckWarning(f"{old} is set and does nothing: it is {new} now.", hint=f"Rename it to {new}.", id="pgqueue.W012")
        for old, new in sorted(settings.PGQUEUE["RENAMED"].items())
    ]


def wires(**options: Any) -> list[CheckMessage]:
    """How each connection to another machine is verified. Needs no database."""
    found = ((wire, f"{wire.variable}, {wire.host}: {wire.said}.") for wire in every_wire())
    return [Info(said, id="pgqueue.I010") if wire.verified else _bare(wire, said) for wire, said in found]


def _bare(wire: ConnectionRisk, said: str) -> CheckMessage:
    return CheckWarning(said, hint=f"Whoever stands between could read and change it; {wire.cure}.", id="pgqueue.W010")


def own_sessions(databases: Sequence[str] | None = None, **options: Any) -> list[CheckMessage]:
    """``check --database default --database queues``: that no pooler changes sessions with each transaction."""
    from pgqueue_admin.models import pooler_check as own_sessions

    asked = [alias for alias in ("default", "queues") if alias in (databases or ())]
    if "queues" in asked:
        asked.append("history")
    return [Error(said, id="pgqueue.E002") for said in own_sessions.refusals(asked)]


def peek_settings(databases: Sequence[str] | None = None, **options: Any) -> list[CheckMessage]:
    """``check --database default``: each endpoint's peek delay against its range and its queue's TTBRs."""
    return [said(found) for found in _faults()] if "default" in (databases or ()) else []


def others_code(databases: Sequence[str] | None = None, **options: Any) -> list[CheckMessage]:
    """``check --database default --database queues``: whether other database users could run code as the console."""
    from pgqueue_admin.alerts import database_exposure

    asked = databases or ()
    found: list[CheckMessage] = []
    try:
        if "default" in asked:
            found += [said(each) for each in database_exposure.of_console()]
        if "queues" in asked:
            found += [said(each) for each in database_exposure.of_queues()]
            told = list(database_exposure.of_handlers())
            found += [said(each) for each in told]
            found += [] if told else map(_open, database_exposure.open_schemas())
    except (DatabaseError, django.db.Error):  # W006 reports the queues' database; without the console's nothing starts
        return found
    return found


def _open(creator: Any) -> CheckMessage:
    """Report an open schema. The console resolves no functions there; sessions of handlers and other programs may."""
    return Info(
        f"{f'The role {creator.name}' if creator.name else 'Everybody'} may create in the schema {creator.schema} of "
        "QUEUES_URL.",
        hint=f"Programs that look functions up there run what others make. Have its owner run: {creator.cure}",
        id="pgqueue.I011",
    )


def queue_tables(databases: Sequence[str] | None = None, **options: Any) -> list[CheckMessage]:
    """``check --database queues``: columns and indexes of every queue, each fault with the SQL that repairs it.

    It covers every watched database: further ones have no alias that ``check`` could name.
    """
    if "queues" not in (databases or ()):
        return []
    from pgqueue_admin.models.queue_database import looked_at, queue_database

    return [*_of_database(queue_database(), _ours()), *(each for of in looked_at() for each in _of_database(of, []))]


def _of_database(of: "QueueDatabase", ours: list[Any]) -> list[CheckMessage]:
    from pgqueue_admin.alerts import table_faults

    where = f"Database {of.alias}: " if of.alias else ""
    try:
        with of.read_session() as session:
            found = table_faults.every_fault(of, session, ours)
    except DatabaseError as error:
        return [CheckWarning(f"{where}The queues' tables were not looked at: {error}", id="pgqueue.W006")]
    return [_of_table(fault._replace(said=f"{where}{fault.said}")) for fault in found]


def _ours() -> list[Any]:
    from pgqueue_admin.models import Endpoint

    try:
        return list(Endpoint.objects.filter(ours=True))
    except django.db.Error:
        return []


def _of_table(fault: TableFault) -> CheckMessage:
    """An error if an endpoint of ours could not start, else a warning."""
    if fault.stops:
        return Error(fault.said, hint=fault.cure, id="pgqueue.E001")
    return CheckWarning(fault.said, hint=fault.cure, id="pgqueue.W005")


def _faults() -> Iterator[Finding]:
    from pgqueue_admin.alerts.snapshot import smallest_ttbrs
    from pgqueue_admin.models import Endpoint

    try:
        ttbrs = smallest_ttbrs()
        for endpoint in Endpoint.objects.all():
            yield from peek_delay_rules.faults(endpoint, ttbrs.get((endpoint.schema, endpoint.table), []))
    except django.db.Error:  # not migrated yet: migrate runs this check first
        return


def said(found: Finding) -> CheckWarning:
    return CheckWarning(
        f"{found.subject}: {found.said.fact}.".replace(NBSP, " "),
        hint=found.said.meaning.replace(NBSP, " "),
        id=IDS[found.kind],
    )


OF_SETTINGS = (environment, renamed_variables, wires)
OF_DATABASES = (own_sessions, peek_settings, others_code, queue_tables)

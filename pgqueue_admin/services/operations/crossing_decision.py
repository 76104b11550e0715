"""Records what a person says became of a crossing that no database can answer for."""

import logging
from contextlib import suppress
from typing import Any

import django.db

from pgqueue_admin.archive import crossings
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import audit_intents
from pgqueue_admin.services.operations import queries
from pgqueue_admin.services.operations.crossings import end_as, one_pending
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused
from pgqueue_admin.services.operations.runner import recount
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)


def decide(number: int, arrived: bool, person: Any, origin: str, reason: str) -> int:
    """A person has looked, and says; of how many messages. Raises OperationRefused, DatabaseError: then nothing is
    decided."""
    if refusal := refusal_for(person, "decide"):
        raise OperationNotAllowed(f"Nothing was decided: {refusal}.")
    if not reason:
        raise OperationRefused("Nothing was decided: say as the reason what you saw there.")
    with queue_database().read_session() as here:
        found = one_pending(here, number)
    if found is None or not found.crossing.not_known:
        raise OperationRefused(f"Nothing was decided: no crossing {number} waits for it.")
    about: dict[str, Any] = {
        "who": name_of(person),
        "origin": origin,
        "reason": reason,
        "subject": found.crossing.alias,
    }
    about |= {"after": {"crossing": number, "arrived": arrived, "rows": found.rows}}
    about |= {"count": max(1, found.number)}  # also one of which nothing was put there is decided
    with queue_database().write_session() as here, crossings.held(here, number) as mine:
        if mine is None or not mine.not_known:
            raise OperationRefused("Nothing was decided: somebody else has decided it just now.")
        audit_intents.drop(number, verb="decide")  # of a decision that was killed before it was one
        audit_intents.write(number, **audit_intents.NOT_KNOWN)  # of the act, where another console has given it up
        audit_intents.keep(number, verb="decide", noun="message", **about)
        end_as(here, mine, arrived, name_of(person))
        with suppress(audit_intents.AuditSilent):  # then the intent stays, and becomes an entry later
            audit_intents.write(number)
    _count_anew(found.crossing.operation)
    return found.number


def _count_anew(operation: int | None) -> None:
    """Its operation has ended, so nobody else comes back to its figures. What was decided stays so, whatever fails."""
    try:
        for pk in queries.counted_here([operation]):
            recount(pk, only_changes=True)
    except (DatabaseError, django.db.Error) as error:
        log.error("The figures of operation %s are those of before a decision: %s", operation, error)

"""Records a person's decision on a crossing whose outcome no database can tell."""

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
    """Record whether it arrived; return how many messages. Raises OperationRefused, DatabaseError with
    nothing decided.
    """
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
    about |= {"count": max(1, found.number)}  # a crossing that put no rows there is decided, too
    with queue_database().write_session() as here, crossings.held(here, number) as mine:
        if mine is None or not mine.not_known:
            raise OperationRefused("Nothing was decided: somebody else has decided it just now.")
        audit_intents.drop(number, verb="decide")  # left by a killed decision
        audit_intents.write(number, **audit_intents.NOT_KNOWN)  # the act's own, if another console gave it up
        audit_intents.keep(number, verb="decide", noun="message", **about)
        end_as(here, mine, arrived, name_of(person))
        with suppress(audit_intents.AuditSilent):  # if so, the intent becomes an entry later
            audit_intents.write(number)
    _count_anew(found.crossing.operation)
    return found.number


def _count_anew(operation: int | None) -> None:
    """Recount its operation, which has ended and is not recounted otherwise. The decision stands even if this fails."""
    try:
        for pk in queries.counted_here([operation]):
            recount(pk, only_changes=True)
    except (DatabaseError, django.db.Error) as error:
        log.error("The figures of operation %s are those of before a decision: %s", operation, error)

"""Handles one dead message as a retry would, and rolls it back."""

import socket
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.conf import settings

from pgqueue_admin.archive import dead_messages, fingerprints, store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.archive.messages import ArchivedMessage, clean
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models.trial import TrialItem
from pgqueue_admin.monitor import discovery
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.failure import Failure, failure_of
from pgqueue_admin.transport.handling.attempt import AttemptFailed, EmptyMessage
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.workers.trials.trial_transaction import (
    CAUGHT,
    CannotTell,
    CannotTry,
    DjangoRollback,
    LeftTransaction,
    TrialTransaction,
)

Outcome = TrialItem.Outcome
LEFT = (
    "Its handler left its transaction. What was written in it is not kept; what was done after that may stand: "
    "look before you retry it."
)
MOST_BYTES = 20_000_000  # of a body
MOST_WHY = 1_000


@dataclass(frozen=True, slots=True)
class TrialResult:
    outcome: str
    why: str = ""
    raised: str = ""
    same_cause: bool | None = None
    sends: int = 0


def run(endpoint: Endpoint, archive_id: int, connection: Connection) -> TrialResult:
    """``connection``: reads the archive and the catalog. Raises DatabaseError if it cannot."""
    try:
        archived = store.get(connection, archive_id)
        message = _as_retried(archived, connection)
        endpoint.handlers.of(message.types)  # before any application code runs
        return _tried(endpoint, message, archived, connection)
    except CannotTry as error:
        return TrialResult(Outcome.REFUSED, str(error))
    except CannotTell as error:
        return TrialResult(Outcome.UNKNOWN, str(error))
    except LeftTransaction:
        return TrialResult(Outcome.LEFT, LEFT)


def _as_retried(archived: ArchivedMessage | None, connection: Connection) -> IncomingMessage:
    """The message as its endpoint would receive it. Raises CannotTry."""
    if archived is None or archived.state != "dead":
        raise CannotTry("It is not dead any more.")
    if why := archived.why_no_retry:
        raise CannotTry(why)
    if (archived.body_bytes or 0) > MOST_BYTES:
        raise CannotTry(f"Its body has more than {MOST_BYTES:,} bytes.")
    body = store.body(connection, archived.id, 0, MOST_BYTES)
    try:
        text = dead_messages.retried_headers(archived.headers, archived.id, None)
    except h.HeadersUnreadable as error:
        raise CannotTry(f"It cannot be retried: {error}.") from error
    assert archived.target, "else there is a reason why it is not retried"
    assert body, "likewise"
    row_id = str(uuid4())
    return IncomingMessage(archived.target, row_id, 0, False, text, body.content, h.parse(text))


def _tried(
    endpoint: Endpoint, message: IncomingMessage, archived: ArchivedMessage | None, connection: Connection
) -> TrialResult:
    transaction, models, handling = TrialTransaction(endpoint), DjangoRollback(), endpoint.handling()
    try:
        with transaction.begin(), models.begin():
            try:
                handling.make(message, transaction)
                transaction.check()
                models.check()
            except EmptyMessage:
                return TrialResult(Outcome.SUCCEEDS, "It has no body: it is acknowledged, and no handler runs.")
        _refuse_unsendable(transaction.caught, connection)
    except (CannotTry, CannotTell, LeftTransaction):
        raise
    except AttemptFailed as error:
        if isinstance(error.error, CannotTry):
            raise error.error from error
        if models.explains(error.error):
            raise CannotTell(CAUGHT) from error
        failure = error.failure or _failure(endpoint, message, error.error)
        return _raised(message, failure, archived, len(transaction.caught))
    except Exception as error:  # an error deferred to the commit, or while reading the message
        return _raised(message, _failure(endpoint, message, error), archived, len(transaction.caught))
    return TrialResult(Outcome.SUCCEEDS, sends=len(transaction.caught))


class QueueMissing(Exception):
    """A message is sent to a queue that does not exist."""


def _refuse_unsendable(caught: list[OutgoingMessage], connection: Connection) -> None:
    for address in dict.fromkeys(each.destination for each in caught if each.delay is None):
        if discovery.find_one(connection, address) is None:
            raise QueueMissing(f"it sends to {postgresql().canonical(address)}, where no queue can be seen")


def _failure(endpoint: Endpoint, message: IncomingMessage, error: BaseException) -> Failure:
    return failure_of(error, endpoint.name, message.queue, recoverable=True)


def _raised(message: IncomingMessage, failure: Failure, archived: Any, sends: int) -> TrialResult:
    same = _is_same(message, failure, archived)
    return TrialResult(Outcome.RAISES, clean(failure.message, MOST_WHY) or "", failure.exception_type, same, sends)


def _is_same(message: IncomingMessage, failure: Failure, archived: Any) -> bool | None:
    """Whether it failed as when it died, by fingerprint. None: the earlier failure is unknown."""
    if not archived.exception_type:
        return None
    own_code = settings.PGQUEUE["OWN_CODE"]
    now = fingerprints.digest(dead_message(message, failure, postgresql(), socket.gethostname()), own_code)
    return fingerprints.of_row(archived, own_code).digest == now

"""Sends an outbox's records by hand, for its page and Django admin."""

from typing import Any

from pgqueue_admin.alerts.outboxes import OutboxState
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.services.outbox import acts
from pgqueue_admin.services.outbox.acts import Dispatched
from pgqueue_admin.services.outbox.checked_outbox import engine_for
from pgqueue_admin.services.outbox.switches import ByHandOutbox
from pgqueue_admin.services.permissions import database_lets, refusal_for
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.workers.processes.endpoint_settings import of_row

FOREIGN = "it is not of an endpoint that runs here with an outbox, so it is only looked at"
EFFECT = "Each record is sent with the ids that it has, and marked in the same transaction: nothing is sent twice."


def refusal(person: Any, state: OutboxState | None) -> str:
    """Why nothing may be sent from there, in words that follow a colon."""
    if why := refusal_for(person, "dispatch") or database_lets("dispatch"):
        return str(why)
    if state is not None and state.alias:
        return only_looked(state.alias)
    is_closed = state is not None and state.endpoint is None and not (state.decided and state.decided.dispatch_allowed)
    return FOREIGN if is_closed else ""


def only_looked(alias: str) -> str:
    """Words that follow a colon."""
    return f"it lies in the database {alias}, which is only looked at; its own program sends and cleans up"


def send(state: OutboxState, ids: list[str] | None, person: Any, origin: str, reason: str) -> Dispatched:
    """Send these records, or all that wait, up to a limit. Raises OperationRefused, SettingsRefused, OutcomeUnknown or
    DatabaseError.
    """
    wanted = ids if ids is not None else _waiting(state)
    engine = _engine(state)
    try:
        assert isinstance(engine.outbox, EndpointOutbox)
        outbox = engine.outbox if state.endpoint else ByHandOutbox(engine.outbox, state.address)
        return acts.dispatch(outbox, wanted, person, origin, reason)
    finally:
        engine.stop(0)


def said(done: Dispatched) -> str:
    sent = f"{pluralize(done.messages, 'message')} of {pluralize(done.records, 'record')} sent."
    passed = f" {pluralize(done.passed, 'record')} had been sent meanwhile." if done.passed else ""
    left = f" {pluralize(len(done.refused), 'record')} could not be sent: {done.refused[0]}" if done.refused else ""
    return f"{sent}{passed}{left}"


def _engine(state: OutboxState) -> Engine:
    """Return an engine that is never started; for a table of others one named after it. Raises SettingsRefused."""
    if endpoint := state.endpoint:
        return Engine(endpoint.name, queue_database().dsn, settings=of_row(endpoint), schema=endpoint.schema)
    return engine_for(state.address)


def _waiting(state: OutboxState) -> list[str]:
    with queue_database().read_session(state.address) as connection:
        return outboxes.pending_ids(connection, state.address, acts.MOST)

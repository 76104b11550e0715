"""The kinds of operation: the state that each requires of messages, and what it does."""

from collections.abc import Callable
from dataclasses import dataclass

from pgqueue_admin.archive import call_back, dead_messages
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.formatting.audit_verbs import past
from pgqueue_admin.models import Endpoint, Operation
from pgqueue_admin.services.operations import edits, redirects, targets

Do = Callable[[Connection, list[int], str, int], list[Outcome]]


@dataclass(frozen=True, slots=True)
class OperationKind:
    state: str  # required of archived messages; empty: it takes from a queue
    past: str
    do: Do


def _retry(connection: Connection, ids: list[int], who: str, operation: int) -> list[Outcome]:
    asked = Operation.objects.only("targets", "rules", "restores", "edit").get(pk=operation)
    judge = targets.judge_with(targets.parsed(asked.targets))
    redirect = redirects.redirect_with(connection, redirects.of(asked))
    return dead_messages.retry(
        connection,
        ids,
        who,
        operation,
        ours=ours(),
        judge=judge,
        redirect=redirect,
        restores=asked.restores,
        edited=edits.editing(asked),
    )


def _call_back(connection: Connection, ids: list[int], who: str, operation: int) -> list[Outcome]:
    return call_back.call_back(connection, ids, who, operation, targets.not_given_back)


def _nothing(connection: Connection, ids: list[int], who: str, operation: int) -> list[Outcome]:
    """A purge walks its queue, not a set (purge_chunk)."""
    raise NotImplementedError


def ours() -> dead_messages.Asked:
    """Return a function that tells whether an endpoint of ours receives from an address; endpoints are read once."""
    known = {Address(*names) for names in Endpoint.objects.filter(ours=True).values_list("schema", "table")}
    return known.__contains__


KINDS = {
    Operation.Kind.RETRY: OperationKind("dead", past("retry"), _retry),
    Operation.Kind.DISCARD: OperationKind("dead", past("discard"), dead_messages.discard),
    Operation.Kind.RESTORE: OperationKind("discarded", past("restore"), dead_messages.restore),
    Operation.Kind.CALL_BACK: OperationKind("retried", past("call back"), _call_back),
    Operation.Kind.PURGE: OperationKind("", past("purge"), _nothing),
}


def state_for(operation: Operation) -> str:
    """Return the state required of archived messages."""
    return "discarded" if operation.restores else kind_of(operation.kind).state


def kind_of(name: str) -> OperationKind:
    return KINDS[Operation.Kind(name)]

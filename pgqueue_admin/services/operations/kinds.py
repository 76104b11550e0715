"""What the kinds of operation have in common, and in what they differ: the state they need, and what they do."""

from collections.abc import Callable
from dataclasses import dataclass

from pgqueue_admin.archive import replay
from pgqueue_admin.archive.messages import Outcome
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.formatting.audit_verbs import past
from pgqueue_admin.models import Endpoint, Operation
from pgqueue_admin.services.operations import targets

Do = Callable[[Connection, list[int], str, int], list[Outcome]]


@dataclass(frozen=True, slots=True)
class OperationKind:
    state: str  # the messages it can be done to
    past: str
    do: Do


def _retry(connection: Connection, ids: list[int], who: str, operation: int) -> list[Outcome]:
    named = Operation.objects.values_list("targets", flat=True).get(pk=operation)
    return replay.retry(connection, ids, who, operation, ours=ours(), judge=targets.judge_with(targets.parsed(named)))


def ours() -> replay.Asked:
    """Asks whether an endpoint of ours receives from an address; read once, asked per queue."""
    known = {Address(*names) for names in Endpoint.objects.filter(ours=True).values_list("schema", "table")}
    return known.__contains__


KINDS = {
    Operation.Kind.RETRY: OperationKind("dead", past("retry"), _retry),
    Operation.Kind.DISCARD: OperationKind("dead", past("discard"), replay.discard),
    Operation.Kind.RESTORE: OperationKind("discarded", past("restore"), replay.restore),
}


def kind_of(name: str) -> OperationKind:
    return KINDS[Operation.Kind(name)]

"""What is remembered of a process that ended unasked: each message in its hands, and how it ended."""

from datetime import UTC, datetime

from pgqueue_admin.archive.messages import clean
from pgqueue_admin.models import InFlightAtCrash
from pgqueue_admin.workers.supervisor.managed_process import ManagedProcess


def held_at_death(process: ManagedProcess, code: int) -> list[InFlightAtCrash]:
    """A row a message. Several at once are all suspects: ``beside`` says how many others there were."""
    died = {"died_at": datetime.now(UTC), "exit_code": code, "how": process.how[:200]}
    who = {"endpoint": process.role.key.endpoint, "beside": max(0, len(process.held) - 1)}
    return [
        InFlightAtCrash(
            **died,
            **who,
            **process.identity._asdict(),
            schema=held.schema,
            table=held.table,
            row_id=held.row_id,
            seq=held.seq,
            message_id=clean(held.message_id) or "",
            message_type=clean(held.type) or "",
            held_since=held.since,
        )
        for held in process.held
    ]

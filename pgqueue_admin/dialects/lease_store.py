"""What the lease queue asks of a database: messages that are locked for a time, and end in an archive."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Connection

QUEUE = Address("messages", "message")
Result = Literal["success", "rejected", "failed", "lock_expired"]


class Lease(NamedTuple):
    """A message that is locked, and the token that says by whom.

    ``message``: JSON as text, of any depth and size. ``attempts``: how often it was claimed, this time too.
    ``expires_at``: when the lock ends by the database's clock, as of the claim.
    """

    id: int
    token: str
    created_at: datetime
    message: str
    attempts: int
    expires_at: datetime


class Ending(NamedTuple):
    """How a message is to end. Texts hold no NUL and no half character."""

    id: int
    token: str
    result: Result
    details: str | None = None
    message_type: str | None = None
    exception_type: str | None = None
    exception_message: str | None = None
    stack_trace: str | None = None


class Ended(NamedTuple):
    """How it ended: as *lock_expired* where its lock was over. ``archive_id``: None where a success is not archived."""

    id: int
    result: Result
    archive_id: int | None


class Expired(NamedTuple):
    """What became of locks that were over."""

    archived: int
    released: int


class Outlook(NamedTuple):
    """Seconds until the next message can be claimed, and until the next lock is over: negative where one is already,
    None where no message waits, or none is locked.
    """

    claim_in: float | None
    expire_in: float | None

    @property
    def can_claim(self) -> bool:
        return self.claim_in is not None and self.claim_in <= 0

    @property
    def can_expire(self) -> bool:
        return self.expire_in is not None and self.expire_in <= 0

    @property
    def is_empty(self) -> bool:
        return self.claim_in is None and self.expire_in is None


class DeadLease(NamedTuple):
    """A dead message that is given to a handler of the dead, and how often it was, this time too.

    ``result`` and all after it is of its archive row; None, where that is gone.
    """

    archive_id: int
    given: int
    message: str | None
    message_id: str | None
    result: Result | None
    details: str | None
    exception_type: str | None
    exception_message: str | None
    handled_by: str | None
    attempts: int | None
    created_at: datetime | None
    archived_at: datetime | None


class HandEnding(NamedTuple):
    """How a person ends a message. Texts hold no NUL and no half character."""

    result: Literal["rejected", "failed"]
    who: str
    details: str


class LeaseStore(Protocol):
    """Each call is one statement, of which nothing is looked up by the session's search path or zone."""

    def is_installed(self, session: Connection) -> bool:
        """Whether its tables are there, and as this program knows them."""

    def publish(self, session: Connection, messages: Sequence[str]) -> list[int]:
        """Insert JSON texts, in this order; their ids."""

    def claim(self, session: Connection, most: int, seconds: float, releases: int = 0, holder: str = "") -> list[Lease]:
        """Lock so many messages that nobody has locked and that are due. Expired locks are left to ``expire``.

        ``releases``: up to which attempt a message is released, and not archived, where this lock expires.
        ``holder``: who this is, for readers; kept where the tables are of version 10.
        """

    def renew(self, session: Connection, leases: Sequence[tuple[int, str]], seconds: float) -> set[str]:
        """Have the locks end so many seconds from now; the tokens of those that were still held."""

    def finish(
        self,
        session: Connection,
        endings: Sequence[Ending],
        handled_by: str,
        machine: str,
        archive_success: bool = True,
    ) -> list[Ended]:
        """Delete and archive at once what is still held by its token, and nothing else."""

    def release(self, session: Connection, lease: tuple[int, str], after: float | datetime = 0) -> bool:
        """For another go, in so many seconds or at that time. False: it was not held any more."""

    def release_seen(self, session: Connection, id: int, seen: str) -> bool:
        """By hand: as ``release``, from the lock that somebody looked at. False: nothing was done."""

    def end_seen(self, session: Connection, id: int, seen: str, ending: HandEnding) -> int | None:
        """By hand: end a message whose lock, or lack of one, is that which somebody looked at; its archive id."""

    def seen_now(self, session: Connection, id: int) -> str | None:
        """Which lock it has now, empty for none; None: it is not there."""

    def expire(self, session: Connection, most: int, handled_by: str) -> Expired:
        """Archive or release messages whose locks are over; those that somebody else has in hand are left to them."""

    def renotify(self, session: Connection, most: int) -> int:
        """NOTIFY again for so many unprocessed messages, the next ones at each call; how many."""

    def outlook(self, session: Connection) -> Outlook:
        """When there is something to claim next, and when to expire."""

    def ask_for_dead(self, session: Connection) -> None:
        """From now on dead messages are kept for who handles them."""

    def claim_dead(self, session: Connection, most: int, seconds: float) -> list[DeadLease]:
        """So many that nobody has had for their time; each comes again after ``seconds``, unless it is ended."""

    def end_dead(self, session: Connection, archive_id: int) -> None:
        """It comes no more."""

    def delay_dead(self, session: Connection, archive_id: int, seconds: float) -> None:
        """It comes again then."""

    def dead_due_in(self, session: Connection) -> float | None:
        """Seconds until the next one can be claimed, negative where one can be already; None: there is none."""

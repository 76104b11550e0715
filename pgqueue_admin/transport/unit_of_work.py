"""What message processing needs of the receive transaction."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import ReceiveSession
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

AfterCommit = Callable[[], None]  # what to tell once that is committed


class HandlerSession(Protocol):
    """What a handler's context needs of it."""

    @property
    def lends_session(self) -> bool:
        """Whether ``session_for_handlers`` gives one, without asking for it: that may take a round trip."""

    def session_for_handlers(self) -> ReceiveSession | None: ...
    def enlist(self, name: str) -> ReceiveSession:
        """Raises NotEnlisted."""

    def subscribers(self, topics: list[str]) -> list[Address]: ...
    def dispatch_now(self, outgoing: list[OutgoingMessage]) -> None: ...


class UnitOfWork(HandlerSession, Protocol):
    """A receive."""

    keeps_failed: ClassVar[bool]  # a failed message is back in its queue

    def to_give_up(self) -> AbstractContextManager[ReceiveSession]:
        """The transaction in which an exhausted message is put away."""

    @property
    def lost(self) -> bool:
        """The session that holds the message is gone, and the message with it back in its queue."""

    @property
    def is_doomed(self) -> bool:
        """Nothing more can be written in it: the message comes back, and what was decided is remembered."""

    def gives_back(self, error: Exception) -> bool:
        """Whether the message is back in its queue for nothing that is wrong with it or its destination."""

    def was_handled(self, message: IncomingMessage) -> bool:
        """Before, and committed. What that sent and nobody dispatched is dispatched now."""

    def is_conflict(self, error: BaseException) -> bool:
        """Somebody handles the same message at this moment, or the database chose between the two: it comes back."""

    def handled(self, outgoing: list[OutgoingMessage], after_commit: list[Callable[[], None]]) -> None:
        """Its handlers are done, and this is what they sent, with its copy for the audit queue.

        ``after_commit``: to be called once all that they wrote is committed. Where that is done here, so is that.
        """

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        """What is sent without a handler."""

    def dispatch_with_receive(self, outgoing: list[OutgoingMessage]) -> None: ...

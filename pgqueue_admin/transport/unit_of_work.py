"""The interface of the receive transaction to message processing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import ReceiveSession
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

AfterCommit = Callable[[], None]  # called after the commit


class HandlerSession(Protocol):
    """The part that a handler's context uses."""

    @property
    def lends_session(self) -> bool:
        """Whether ``session_for_handlers`` returns a session; saves the round trip that it may need."""

    def session_for_handlers(self) -> ReceiveSession | None: ...
    def enlist(self, name: str) -> ReceiveSession:
        """Raises NotEnlisted."""

    def subscribers(self, topics: list[str]) -> list[Address]: ...
    def dispatch_now(self, outgoing: list[OutgoingMessage]) -> None: ...


class UnitOfWork(HandlerSession, Protocol):
    """The transaction of one receive."""

    keeps_failed: ClassVar[bool]  # a failed message returns to its queue

    def to_give_up(self) -> AbstractContextManager[ReceiveSession]:
        """The transaction in which an exhausted message is dead-lettered."""

    @property
    def lost(self) -> bool:
        """Whether the session that holds the message was lost: the message returns to its queue."""

    @property
    def is_doomed(self) -> bool:
        """Whether it accepts no more writes: the message returns, and the decision is kept."""

    def gives_back(self, error: Exception) -> bool:
        """Whether the message returns to its queue through no fault of its own or its destination."""

    def was_handled(self, message: IncomingMessage) -> bool:
        """Whether the message was handled and committed before. Dispatches its pending sends."""

    def is_conflict(self, error: BaseException) -> bool:
        """Whether another process handles the same message, or the database chose a victim: the message returns."""

    def handled(self, outgoing: list[OutgoingMessage], after_commit: list[Callable[[], None]]) -> None:
        """Take the handlers' sends, with the audit copy.

        ``after_commit``: to be called once all handlers' writes are committed; called here if they are committed here.
        """

    def dispatch(self, outgoing: list[OutgoingMessage]) -> None:
        """Send without a handler."""

    def dispatch_with_receive(self, outgoing: list[OutgoingMessage]) -> None: ...

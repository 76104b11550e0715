"""Ports of the engine: exhausted messages, observers, outbox."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import Command, Connection, TwoPhaseSession
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage


class Exhausted(Protocol):
    """Takes an exhausted message."""

    def __call__(self, connection: Any, message: IncomingMessage, failure: Failure) -> None:
        """Called inside the receive transaction, with its session: what it writes and the message's end are one commit.

        If it raises, the message stays in its queue and is tried again after a pause.
        """


class HeldMessage(Protocol):
    """A message in hand, of whatever queue. ``row_id``: a UUID, the same at each attempt."""

    @property
    def queue(self) -> Address: ...
    @property
    def row_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def message_id(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def time_to_be_received(self) -> timedelta | None: ...


class EnlistedDatabase(Protocol):
    """One that handlers write in beside the outbox's. ``id``: of a transaction over several databases."""

    name: str

    def connect(self) -> Connection:
        """Raises DatabaseDown."""

    def begin(self, session: TwoPhaseSession, id: str) -> None: ...
    def prepare(self, session: TwoPhaseSession, id: str) -> None: ...
    def commit(self, session: TwoPhaseSession, id: str) -> bool:
        """What is prepared; False where it is not there."""

    def rollback(self, session: TwoPhaseSession, id: str) -> bool:
        """As ``commit``."""


class Outbox(Protocol):
    """Remembers which messages were handled and what they sent, in one commit with what handlers wrote (O1).

    A storage session is its own: handlers write in it, and it is not the one that receives.
    """

    is_pessimistic: bool  # the record is inserted before the handlers run
    finds_apart: bool  # the look for the record is no part of the transaction in which handlers write
    is_beside_queues: bool  # its table lies in the queues' database: sends and mark are one commit with the receive

    @property
    def databases(self) -> Mapping[str, EnlistedDatabase]:
        """Those that handlers may enlist, by name."""

    def connect(self) -> Connection:
        """A storage session. Raises DatabaseDown."""

    def deciding(self, id: str, databases: Sequence[str]) -> Command:
        """Says in the storage transaction that these commit with it; before anything is prepared under this id."""

    def finding(self, message_id: str) -> Command:
        """What looks for a message's record."""

    def undispatched(self, row: Any) -> list[OutgoingMessage]:
        """What a record that was found is still to send. Raises OperationsUnreadable."""

    def storing(self, message_id: str, outgoing: Sequence[OutgoingMessage]) -> Command:
        """Inserts a record of these."""

    def completing(self, message_id: str, outgoing: Sequence[OutgoingMessage]) -> Command:
        """Puts these into the record that is there."""

    def marking(self, message_id: str) -> Command:
        """Says that all was sent; fails where that was said already."""

    def marking_apart(self, message_id: str) -> list[Command]:
        """As ``marking``, as the first of a transaction whose commit no other session may then refuse."""


class EndpointOutbox(Outbox, Protocol):
    """The outbox of one endpoint, with what cleans it up and sends what a crash left."""

    def create(self) -> None:
        """Its table, where it is missing."""

    def relay(self, session: Connection, record_id: str) -> int | None:
        """Send one record; how many messages. None: it was sent, or is not there."""

    def transactional_session(self, connection: Any, outbound: Any, at_once: Any) -> Any:
        """For sends with a commit of the caller's own."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class MakeOutbox(Protocol):
    """How an endpoint is to have one; two are equal where they mean the same."""

    def faults(self) -> Iterable[str]:
        """What cannot be, whatever the endpoint."""

    def faults_of(self, client: Any) -> Iterable[str]:
        """Why this endpoint cannot have it."""

    def for_endpoint(self, client: Any, dispatcher: Any) -> EndpointOutbox:
        """Raises SettingsRefused."""


class Observer(Protocol):
    """Receives events from the threads in which they happen. Must not raise, and must be quick."""

    def received(self, message: HeldMessage) -> None:
        """A message for this endpoint, not expired; called again with each attempt."""

    def handled(self, seconds: float) -> None:
        """A message was handled and committed; ``seconds``: how long its handlers took."""

    def failed(self, error: BaseException) -> None:
        """An attempt failed, whatever comes next."""

    def retried(self) -> None:
        """A failed message will be tried again, at once or later."""

    def expired(self, type: str) -> None:
        """T3: a message expired and was dropped."""

    def duplicate(self) -> None:
        """A message was dropped: the outbox has a record that it was handled."""

    def in_flight(self, slot: int, message: HeldMessage | None) -> None:
        """Slots count from 0; None: the slot's hand is empty again."""

    def critical_time(self, seconds: float) -> None:
        """From sent (or due) until now, of a handled message; not called if it says neither."""


class Unobserved:
    """An observer that ignores everything; also a base class."""

    def received(self, message: HeldMessage) -> None: ...
    def handled(self, seconds: float) -> None: ...
    def failed(self, error: BaseException) -> None: ...
    def retried(self) -> None: ...
    def expired(self, type: str) -> None: ...
    def duplicate(self) -> None: ...
    def in_flight(self, slot: int, message: HeldMessage | None) -> None: ...
    def critical_time(self, seconds: float) -> None: ...

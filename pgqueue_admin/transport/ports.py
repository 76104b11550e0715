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
        """Called inside the receive transaction, with its session: its writes commit together with the receive.

        If it raises, the message stays in its queue and is retried after a pause.
        """


class HeldMessage(Protocol):
    """A message in flight, of any kind of queue. ``row_id``: a UUID, the same at each attempt."""

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
    """A database that handlers write in beside the outbox's. ``id``: of the distributed transaction."""

    name: str

    def connect(self) -> Connection:
        """Raises DatabaseDown."""

    def begin(self, session: TwoPhaseSession, id: str) -> None: ...
    def prepare(self, session: TwoPhaseSession, id: str) -> None: ...
    def commit(self, session: TwoPhaseSession, id: str) -> bool:
        """Commit the prepared transaction; False if there is none."""

    def rollback(self, session: TwoPhaseSession, id: str) -> bool:
        """Roll back, as ``commit``."""


class Outbox(Protocol):
    """Records handled messages and their sends, in one commit with the handlers' writes (O1).

    Handlers write in a storage session, which is not the receive session.
    """

    is_pessimistic: bool  # the record is inserted before the handlers run
    finds_apart: bool  # the query for the record is not part of the transaction in which handlers write
    is_beside_queues: bool  # its table is in the queues' database: sends and mark commit with the receive

    @property
    def databases(self) -> Mapping[str, EnlistedDatabase]:
        """Databases that handlers can enlist, by name."""

    def connect(self) -> Connection:
        """Open a storage session. Raises DatabaseDown."""

    def deciding(self, id: str, databases: Sequence[str]) -> Command:
        """The statement, in the storage transaction, that these databases commit with it. Execute before preparing."""

    def finding(self, message_id: str) -> Command:
        """The query for a message's record."""

    def undispatched(self, row: Any) -> list[OutgoingMessage]:
        """Pending sends of a record. Raises OperationsUnreadable."""

    def storing(self, message_id: str, outgoing: Sequence[OutgoingMessage]) -> Command:
        """The statement that inserts a record of these."""

    def completing(self, message_id: str, outgoing: Sequence[OutgoingMessage]) -> Command:
        """The statement that adds these to the existing record."""

    def marking(self, message_id: str) -> Command:
        """The statement that marks a record as sent; fails if already marked."""

    def marking_apart(self, message_id: str) -> list[Command]:
        """As ``marking``, at the start of a transaction whose commit then cannot fail because of another session."""


class EndpointOutbox(Outbox, Protocol):
    """The outbox of one endpoint, with clean-up and relay of sends that a crash left."""

    def create(self) -> None:
        """Create its table if missing."""

    def relay(self, session: Connection, record_id: str) -> int | None:
        """Send one record; return how many messages. None: already sent, or missing."""

    def transactional_session(self, connection: Any, outbound: Any, at_once: Any) -> Any:
        """A session for sends that commit with the caller's transaction."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class MakeOutbox(Protocol):
    """Configuration of an endpoint's outbox; compared by value."""

    def faults(self) -> Iterable[str]:
        """Faults that do not depend on the endpoint."""

    def faults_of(self, client: Any) -> Iterable[str]:
        """Faults with this endpoint."""

    def for_endpoint(self, client: Any, dispatcher: Any) -> EndpointOutbox:
        """Raises SettingsRefused."""


class Observer(Protocol):
    """Receives events from the threads in which they happen. Must not raise, and must be quick."""

    def received(self, message: HeldMessage) -> None:
        """A message for this endpoint arrived, not expired; called at each attempt."""

    def handled(self, seconds: float) -> None:
        """A message was handled and committed; ``seconds``: duration of its handlers."""

    def failed(self, error: BaseException) -> None:
        """An attempt failed."""

    def retried(self) -> None:
        """A failed message will be retried, at once or later."""

    def expired(self, type: str) -> None:
        """T3: a message expired and was dropped."""

    def duplicate(self) -> None:
        """A duplicate was dropped: the outbox has its record."""

    def in_flight(self, slot: int, message: HeldMessage | None) -> None:
        """A slot, counted from 0, handles a message; None: no longer."""

    def critical_time(self, seconds: float) -> None:
        """Time from sent (or due) to handled; not called if the message has neither."""


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

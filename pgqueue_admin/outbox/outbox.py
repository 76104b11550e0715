"""What an endpoint is given: how it is to have an outbox, and what makes that (transport.ports.MakeOutbox)."""

from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.outbox.settings import OutboxSettings
from pgqueue_admin.transport.client import Client
from pgqueue_admin.transport.sending.dispatcher import Dispatcher


class Outbox(OutboxSettings):
    """``EndpointSettings(transaction_mode="receive_only", outbox=Outbox(concurrency="pessimistic"))``."""

    __slots__ = ()

    def for_endpoint(self, client: Client, dispatcher: Dispatcher) -> EndpointOutbox:
        return EndpointOutbox(self, client, dispatcher)

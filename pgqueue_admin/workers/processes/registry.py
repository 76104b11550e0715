"""The registry of handlers: applications declare endpoints in ``handlers.py``, found as Django finds ``admin.py``."""

import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from pgqueue_admin.lease import LeaseHandlers
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.transport.endpoint import Endpoint
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.wire.serializers import Serializers


class ProcessContext(Protocol):
    """The process, as a companion sees it."""

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def stopping(self) -> threading.Event: ...

    @property
    def paused(self) -> bool: ...


Companion = Callable[[ProcessContext], None]


class DeclaredEndpoint(Handlers):
    """An endpoint's handlers, serializers, pipeline and companions: a publisher, a poller of other systems."""

    kind = Row.Kind.TRANSPORT

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.companions: list[Companion] = []
        self.pipeline = BehaviourChain()  # add to it: ``sales.pipeline |= BehaviourChain(behaviours=(timed,))``
        self.serializers = Serializers()
        self.models_join = True  # Django's models write in the message's transaction, where that is possible
        self.instance = ""  # for requests: replies come to the instance's own queue, which one process receives from

    def companion(self, run: Companion) -> Companion:
        """``@sales.companion``: called once, in a thread; it must return when ``stopping`` is set.

        If it raises, the process ends and the supervisor restarts it with a growing backoff.
        """
        if run not in self.companions:
            self.companions.append(run)
        return run

    @property
    def modules(self) -> set[str]:
        """Modules of its functions."""
        return _modules([*self.of(self.types), *self.companions])


class DeclaredLeaseEndpoint(LeaseHandlers):
    """The handlers of the endpoint on the lease queue. ``kind_of`` reads the kind from another field than ``kind``:
    ``thumbs.kind_of = by_field("type")``."""

    kind = Row.Kind.LEASE

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @property
    def modules(self) -> set[str]:
        return _modules(self.functions)


Declared = DeclaredEndpoint | DeclaredLeaseEndpoint
_declared: dict[str, Declared] = {}
_Kind = TypeVar("_Kind", DeclaredEndpoint, DeclaredLeaseEndpoint)


def endpoint(name: str) -> DeclaredEndpoint:
    """The endpoint of this name; several applications may add handlers to one.

    Handlers of one message type run in the order of the applications, in one transaction; a function runs once,
    however often it was registered. Raises ValueError if the name is declared as a lease endpoint.

    sales = endpoint("Sales")

    @sales.handle("Shop.PlaceOrder")
    def place_order(message, context): ...
    """
    return _of_kind(name, DeclaredEndpoint)


def lease_endpoint(name: str) -> DeclaredLeaseEndpoint:
    """The endpoint of this name on the lease queue; several applications may add handlers to it.

    thumbs = lease_endpoint("Thumbs")

    @thumbs.handle("render", schema={"required": ["asset"]})
    def render(message, lease): ...
    """
    return _of_kind(name, DeclaredLeaseEndpoint)


def _of_kind(name: str, wanted: type[_Kind]) -> _Kind:
    found = _declared.setdefault(name, wanted(name))
    if not isinstance(found, wanted):
        raise ValueError(f"{name} is declared as an endpoint of the kind {found.kind} already")
    return found


def _modules(functions: Iterable[Any]) -> set[str]:
    return {getattr(function, "__module__", None) or type(function).__module__ for function in functions}


def find() -> dict[str, Declared]:
    """Import every installed application's handlers."""
    from django.utils.module_loading import autodiscover_modules

    autodiscover_modules("handlers")
    return dict(_declared)

"""Endpoints as applications declare them, in a ``handlers.py`` that is found as Django finds ``admin.py``."""

import threading
from collections.abc import Callable
from typing import Protocol

from pgqueue_admin.transport.endpoint import Endpoint
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.wire.serializers import Serializers


class ProcessContext(Protocol):
    """What a companion is given of the process it runs in."""

    endpoint: Endpoint
    stopping: threading.Event

    @property
    def paused(self) -> bool: ...


Companion = Callable[[ProcessContext], None]


class DeclaredEndpoint(Handlers):
    """An endpoint's handlers, how it reads and writes, and what runs beside them: a publisher, a poller of others."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.companions: list[Companion] = []
        self.pipeline = BehaviourChain()  # add to it: ``sales.pipeline |= BehaviourChain(behaviours=(timed,))``
        self.serializers = Serializers()
        self.instance = ""  # of an endpoint that asks: answers come to a queue of its own, and to one process alone

    def companion(self, run: Companion) -> Companion:
        """``@sales.companion``: called once, in a thread; it ends when ``stopping`` is set.

        If it raises, the process ends and the supervisor starts it again, slower each time.
        """
        if run not in self.companions:
            self.companions.append(run)
        return run

    @property
    def modules(self) -> set[str]:
        """Where its functions were written."""
        functions = [*self.of(self.types), *self.companions]
        return {getattr(function, "__module__", None) or type(function).__module__ for function in functions}


_declared: dict[str, DeclaredEndpoint] = {}


def endpoint(name: str) -> DeclaredEndpoint:
    """The endpoint of this name; several applications may add handlers to one.

    Of one message type they run in the order of the applications, in one transaction; a function runs once,
    however often it was registered.

    sales = endpoint("Sales")

    @sales.handle("Shop.PlaceOrder")
    def place_order(message, context): ...
    """
    return _declared.setdefault(name, DeclaredEndpoint(name))


def find() -> dict[str, DeclaredEndpoint]:
    """Import every installed application's handlers."""
    from django.utils.module_loading import autodiscover_modules

    autodiscover_modules("handlers")
    return dict(_declared)

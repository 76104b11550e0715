"""How a worker's messages are handled: by which functions, under which settings, and who is told."""

from collections.abc import Callable
from dataclasses import dataclass

from pgqueue_admin.lease.handlers import LeaseHandlers
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.transport.ports import Observer


@dataclass(frozen=True)
class HandlerContext:
    """``settings``: as they are at that moment. ``before_each``: called in its thread before a handler is."""

    handlers: LeaseHandlers
    settings: Callable[[], LeaseSettings]
    observer: Observer
    before_each: Callable[[], None]

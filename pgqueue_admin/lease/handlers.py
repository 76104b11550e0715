"""Handlers of lease messages by kind, and the JSON Schemas that messages must match."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pgqueue_admin.lease.errors import Rejected
from pgqueue_admin.lease.message import DeadMessage, LeasedMessage
from pgqueue_admin.lease.settings import LeaseSettings
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.transport.sync_call import name_of, refuse_async

# JSON Schema per kind: a message that does not match is rejected with the failing path.
Check = Callable[[Any], None]

_SCHEMES = ("http", "https", "ftp", "file")


def compiled(schema: Mapping[str, Any] | None) -> Check:
    """Return a check that raises Rejected for messages that do not match. Raises ValueError for an invalid schema."""
    if schema is None:
        return lambda message: None
    import fastjsonschema  # only needed with schemas

    refused = dict.fromkeys(_SCHEMES, _refuse_reference)
    try:
        fits = fastjsonschema.compile(dict(schema), handlers=refused, use_default=False)
    except fastjsonschema.JsonSchemaDefinitionException as error:
        raise ValueError(f"not a JSON schema: {error}") from error

    def check(message: Any) -> None:
        try:
            fits(message)
        except fastjsonschema.JsonSchemaValueException as error:
            raise Rejected(f"{_pointer(error.path)}: {error.message}") from None
        except RecursionError:
            raise Rejected("The message is too deep for its schema.") from None

    return check


def _pointer(path: list[Any]) -> str:
    """A JSON Pointer (RFC 6901), except that / means the whole message."""
    return "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in path[1:])


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri}: write it under $defs")


Handler = Callable[[Any, LeasedMessage], Any]
DeadHandler = Callable[[DeadMessage], Any]
KindOf = Callable[[Any], Any]


class KindHandler(NamedTuple):
    function: Handler
    check: Check


def by_field(field: str) -> KindOf:
    """The kind is a field of an object, or the first element of an array, as in the original's worker."""

    def kind_of(message: Any) -> Any:
        if isinstance(message, dict):
            return message.get(field)
        return message[0] if isinstance(message, list) and message else None

    return kind_of


class LeaseHandlers:
    """One handler per kind of message. ``kind_of``: a function that returns the kind, or the name of its field."""

    def __init__(self, kind_of: KindOf | str = "kind"):
        self.kind_of = by_field(kind_of) if isinstance(kind_of, str) else kind_of
        self._by_kind: dict[str | None, KindHandler] = {}
        self._of_dead: dict[str | None, DeadHandler] = {}

    def handle(self, *kinds: str, schema: Mapping[str, Any] | None = None) -> Callable[[Handler], Handler]:
        """``@handlers.handle("render")`` above ``def render(message, lease)``; without a kind: all kinds without a
        handler.

        Messages that do not match the JSON ``schema`` are rejected. The return value becomes the ending's details.
        Raises TypeError for an ``async def``, ValueError for a kind that has a handler, or an invalid schema.
        """

        def register(function: Handler) -> Handler:
            refuse_async(function)
            check = compiled(schema)
            for kind in kinds or (None,):
                if kind in self._by_kind:
                    raise ValueError(f"{kind!r} is handled by {name_of(self._by_kind[kind].function)} already")
                self._by_kind[kind] = KindHandler(function, check)
            return function

        return register

    def on_dead(self, *kinds: str) -> Callable[[DeadHandler], DeadHandler]:
        """``@handlers.on_dead("render")`` above ``def tell(dead)``: called at least once for each message that dies
        after the first worker with such a handler has started; without a kind: all kinds without one. If it raises, it
        is called again after ``retry_after``. Raises as ``handle``."""

        def register(function: DeadHandler) -> DeadHandler:
            refuse_async(function)
            for kind in kinds or (None,):
                if kind in self._of_dead:
                    raise ValueError(f"{kind!r} has {name_of(self._of_dead[kind])} already, when it is dead")
                self._of_dead[kind] = function
            return function

        return register

    def of_dead(self, kind: str | None) -> DeadHandler | None:
        return self._of_dead.get(kind) or self._of_dead.get(None)

    @property
    def handles_messages(self) -> bool:
        """False if only dead messages have handlers: the worker would reject every message."""
        return bool(self._by_kind) or not self._of_dead

    @property
    def handles_dead(self) -> bool:
        """Whether dead messages have a handler."""
        return bool(self._of_dead)

    def of(self, kind: str | None) -> KindHandler:
        """Raises Rejected."""
        found = self._by_kind.get(kind) or self._by_kind.get(None)
        if found is None:
            raise Rejected("The message has no kind." if kind is None else f"Nobody handles the kind {kind[:200]!r}.")
        return found

    @property
    def kinds(self) -> list[str]:
        return sorted(kind for kind in self._by_kind if kind)

    @property
    def functions(self) -> list[Callable[..., Any]]:
        return [*(handler.function for handler in self._by_kind.values()), *self._of_dead.values()]


# How a worker handles messages: handlers, settings, and the observer.
@dataclass(frozen=True)
class HandlerContext:
    """``settings``: returns the current ones. ``before_each``: called in the handler's thread before it."""

    handlers: LeaseHandlers
    settings: Callable[[], LeaseSettings]
    observer: Observer
    before_each: Callable[[], None]

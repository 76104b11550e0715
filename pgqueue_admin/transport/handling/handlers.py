"""Which functions handle which messages."""

from collections.abc import Callable, Sequence

from pgqueue_admin.transport.handling.context import Handler
from pgqueue_admin.transport.sync_call import refuse_async
from pgqueue_admin.transport.wire.type_names import full_name


class Handlers:
    """Functions by the full name of a message type.

    A message goes to every handler of its own type and of the base types and interfaces its headers name.
    ``unrecoverable`` exceptions exhaust a message at once.
    """

    def __init__(self, unrecoverable: tuple[type[BaseException], ...] = ()):
        self.unrecoverable = unrecoverable
        self._by_type: dict[str, list[Handler]] = {}

    def handle(self, *types: str) -> Callable[[Handler], Handler]:
        """``@handlers.handle("Shop.PlaceOrder")`` above ``def place(message, context)``.

        Raises TypeError for an ``async def`` and a generator: their messages would be gone, and nothing done.
        """

        def register(handler: Handler) -> Handler:
            refuse_async(handler)
            for each in types:
                self._add(full_name(each), handler)
            return handler

        return register

    def of(self, types: Sequence[str]) -> Sequence[Handler]:
        """Each handler once, those of the concrete type first."""
        if len(types) == 1:
            return self._by_type.get(types[0], [])
        return list(dict.fromkeys(handler for each in types for handler in self._by_type.get(each, ())))

    @property
    def types(self) -> list[str]:
        return sorted(self._by_type)

    def __or__(self, other: "Handlers") -> "Handlers":
        """Both: how an endpoint with handlers in several modules is put together."""
        both = Handlers(self.unrecoverable + other.unrecoverable)
        for registry in (self, other):
            for name, handlers in registry._by_type.items():
                for handler in handlers:
                    both._add(name, handler)
        return both

    def _add(self, name: str, handler: Handler) -> None:
        known = self._by_type.setdefault(name, [])
        if handler not in known:
            known.append(handler)

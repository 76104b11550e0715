"""Registers handlers by message type."""

from collections.abc import Callable, Sequence

from pgqueue_admin.transport.handling.context import Handler
from pgqueue_admin.transport.sync_call import refuse_async
from pgqueue_admin.transport.wire.type_names import full_name


class Handlers:
    """Functions by the full name of a message type.

    A message goes to every handler of its own type and of the base types and interfaces in its headers.
    ``unrecoverable`` exceptions exhaust a message at once.
    """

    def __init__(self, unrecoverable: tuple[type[BaseException], ...] = ()):
        self.unrecoverable = unrecoverable
        self._by_type: dict[str, list[Handler]] = {}
        self._trial: list[Handler] = []

    def handle(self, *types: str, trial: bool = False) -> Callable[[Handler], Handler]:
        """``@handlers.handle("Shop.PlaceOrder")`` above ``def place(message, context)``.

        ``trial``: it may run on dead messages in a transaction that is always rolled back: its effects elsewhere (mail,
        files, other services) are harmless, or do not happen then.

        Raises TypeError for an ``async def`` and a generator: their messages would be gone, and nothing done.
        """

        def register(handler: Handler) -> Handler:
            refuse_async(handler)
            if trial:
                self._allow_trial(handler)
            for each in types:
                self._add(full_name(each), handler)
            return handler

        return register

    def of(self, types: Sequence[str]) -> Sequence[Handler]:
        """The handlers of these types, each once, the concrete type's first."""
        if len(types) == 1:
            return self._by_type.get(types[0], [])
        return list(dict.fromkeys(handler for each in types for handler in self._by_type.get(each, ())))

    def without_trial(self, types: Sequence[str]) -> list[Handler]:
        """Handlers of these types that must not run in a trial."""
        return [handler for handler in self.of(types) if handler not in self._trial]

    @property
    def types(self) -> list[str]:
        return sorted(self._by_type)

    def __or__(self, other: "Handlers") -> "Handlers":
        """Combine handlers of several modules."""
        both = Handlers(self.unrecoverable + other.unrecoverable)
        for registry in (self, other):
            for name, handlers in registry._by_type.items():
                for handler in handlers:
                    both._add(name, handler)
            for handler in registry._trial:
                both._allow_trial(handler)
        return both

    def _allow_trial(self, handler: Handler) -> None:
        if handler not in self._trial:
            self._trial.append(handler)

    def _add(self, name: str, handler: Handler) -> None:
        known = self._by_type.setdefault(name, [])
        if handler not in known:
            known.append(handler)

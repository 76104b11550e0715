"""Errors of the engine: unreadable messages, and forbidden acts of handlers."""

from collections.abc import Iterable


class Unrecoverable(Exception):
    """Raise this, or a subclass, in a handler: the message is exhausted at once, without retries."""


class MessageUnreadable(Unrecoverable):
    """The message cannot be given to a handler, however often it is tried."""


class NoHandler(Unrecoverable):
    """No handler is registered for the message's types."""


class NoReplyAddress(Unrecoverable):
    """The message being handled does not say where replies go."""


class NotEnlisted(Unrecoverable):
    """A handler enlists a database that its endpoint does not have."""

    def __init__(self, name: str, names: Iterable[str] = ()):
        known = ", ".join(sorted(names))
        cure = f"there are {known}" if known else "give it by outbox=Outbox(databases={…}), with receive_only"
        super().__init__(f"context.enlist({name!r}): the endpoint has no database of that name; {cure}.")


class HandlerFinished(Exception):
    """The message is over: nothing more can be sent, or written, as a part of it. Do so before its handler returns."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class SessionBelongsToMessage(Exception):
    """A handler does not close the session of its message. For a block use context.connection.transaction()."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class NotForwarded(Unrecoverable):
    """A delayed message is due and its destination does not take it."""


class QueueUnfit(Exception):
    """A table is missing, or unfit as a queue. ``said``: the text without the statements that repair it."""

    def __init__(self, text: str, said: str):
        super().__init__(text)
        self.said = said

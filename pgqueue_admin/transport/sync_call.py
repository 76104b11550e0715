"""Refuses async functions of an application: their message would be lost."""

import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from pgqueue_admin.transport.failure import type_name

_ONLY_MADE = (
    "is async, or a generator: a call of it does nothing yet. Write a plain function; asyncio.run() runs others"
)


def refuse_async(function: Callable[..., Any]) -> None:
    """Raises TypeError for an ``async def`` or a generator, also as the ``__call__`` of an object."""
    if any(map(_only_makes, (function, type(function).__call__))):
        raise TypeError(f"{name_of(function)} {_ONLY_MADE}")


def ran(made: object, function: Callable[..., Any]) -> None:
    """Check the result of a call. Raises TypeError for an awaitable or generator, which a decorator had hidden."""
    if made is not None and (inspect.isawaitable(made) or inspect.isgenerator(made) or inspect.isasyncgen(made)):
        if isinstance(made, Coroutine | Generator):
            made.close()  # else Python warns later, without context
        raise TypeError(f"{name_of(function)} {_ONLY_MADE}")


def name_of(function: Callable[..., Any]) -> str:
    """Qualified name of a handler, as in spans and error headers."""
    if isinstance(function, type):
        return type_name(function)
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _only_makes(function: Any) -> bool:
    kinds = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
    return any(is_one(function) for is_one in kinds)

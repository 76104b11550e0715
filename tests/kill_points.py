"""A process that kills itself at one place."""

import os
import signal
from collections.abc import Callable
from itertools import count
from typing import Any


def dies(owner: type, name: str, before: bool, at: int = 3) -> None:
    """Kill the process at this call, before or after the method has run."""
    real: Callable[..., Any] = getattr(owner, name)
    calls = count(1)

    def dying(*args: Any, **kwargs: Any) -> Any:
        is_time = next(calls) == at
        if is_time and before:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **kwargs)
        if is_time:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    setattr(owner, name, dying)

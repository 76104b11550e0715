"""What the signal is called that ended a process."""

import signal


def called(number: int) -> str:
    """``SIGKILL``, and ``signal 36`` of those for which Python has no name: nearly all real-time ones."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

"""How much memory a process may have, and the sentence of the limit that it broke."""

from dataclasses import dataclass

from pgqueue_admin.formatting import numbers

MB = 1_000_000


@dataclass(frozen=True)
class MemoryLimit:
    """Two limits in MB, each of them None for none. Resident memory counts, as the kernel tells it."""

    drain_mb: int | None = None
    kill_mb: int | None = None

    def broken_drain(self, size: int) -> str:
        """Why a process of ``size`` bytes is to drain, as ``_broken`` says it; empty: it is not."""
        return _broken(size, self.drain_mb)

    def broken_kill(self, size: int) -> str:
        """As ``broken_drain``, for one that is to be killed."""
        return _broken(size, self.kill_mb)


NONE = MemoryLimit()


def _broken(size: int, limit_mb: int | None) -> str:
    """``612 MB, above its limit of 600 MB``; empty where it is not."""
    if limit_mb is None or size <= limit_mb * MB:
        return ""
    return f"{numbers.size(size)}, above its limit of {numbers.size(limit_mb * MB)}"

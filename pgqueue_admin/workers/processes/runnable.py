"""What a managed process runs: an endpoint of either kind."""

from typing import Protocol, TypeVar

from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreakers

Settings = TypeVar("Settings", contravariant=True)


class Runnable(Protocol[Settings]):
    """Implemented by ``transport.Endpoint`` and ``lease.LeaseWorker``; what it does, it does in threads of its own."""

    @property
    def breakers(self) -> CircuitBreakers:
        """What does not work behind them, and for how long."""

    @property
    def in_hand(self) -> int:
        """How many messages are being handled at this moment."""

    def start(self) -> None:
        """A database that is down is waited for. Raises QueueUnfit for tables that it cannot work on."""

    def wait(self) -> None:
        """Block until it is stopped."""

    def stop(self, drain_seconds: float = ...) -> bool:
        """Take nothing new, finish what is in hand. False: some was not done in time."""

    def pause(self) -> None:
        """Take nothing new; also before ``start``."""

    def resume(self) -> None: ...

    def apply(self, settings: Settings) -> None:
        """While it runs; what is in hand is finished under the old ones. Raises SettingsRefused."""

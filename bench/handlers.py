"""The endpoint of bench.worker, declared as an application does."""

from typing import Any

from pgqueue_admin.workers.processes.registry import endpoint

engine = endpoint("Engine")


@engine.handle("Shop.Ping")
def ping(body: Any, context: Any) -> None:
    """Do nothing: the measurement is of the engine."""

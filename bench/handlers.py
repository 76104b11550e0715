"""The endpoint of bench.worker, as an application declares one."""

from typing import Any

from pgqueue_admin.workers.processes.registry import endpoint

engine = endpoint("Engine")


@engine.handle("Shop.Ping")
def ping(body: Any, context: Any) -> None:
    """Nothing: what is measured is what is around it."""

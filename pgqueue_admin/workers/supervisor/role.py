"""What the supervisor keeps running: a command line, how many of it, and how long it may take to end."""

from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings

from pgqueue_admin.workers.processes.memory_limit import NONE, MemoryLimit
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity


class RoleKey(NamedTuple):
    kind: str  # endpoint, sampler, alerter, ingester, expirer, history
    endpoint: str = ""


@dataclass(frozen=True)
class Role:
    key: RoleKey
    command: tuple[str, ...]
    want: int = 1
    drain_seconds: float = 10
    settings_module: str = ""  # empty: the worker settings
    known_settings: str = ""  # an endpoint's values as text, for a child that starts while the database is away
    version: int = 0  # of those values
    ceiling: MemoryLimit = NONE
    rolling: bool = False  # a restart is under way
    replace: ProcessIdentity | None = None  # the one whose turn it is in that
    hung_after: float = 0  # seconds without a sign of life at which it is killed; 0: it gives none

    @property
    def label(self) -> str:
        return self.key.endpoint or self.key.kind


def singletons() -> list[Role]:
    """One of each among all supervisors, however many hosts there are."""
    hung = settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"]
    history = Role(RoleKey("history"), ("history",), drain_seconds=30, hung_after=hung)
    return [
        *([history] if settings.PGQUEUE["SPARK_MASTER"] else []),
        Role(RoleKey("sampler"), ("sampler",), hung_after=hung and hung + 2 * settings.PGQUEUE["SAMPLE_SECONDS"]),
        Role(RoleKey("ingester"), ("ingester",), hung_after=hung),
        Role(RoleKey("expirer"), ("lease", "watch"), hung_after=hung),
        Role(RoleKey("alerter"), ("alerter",), settings_module="pgqueue_admin.config.settings", hung_after=hung),
    ]

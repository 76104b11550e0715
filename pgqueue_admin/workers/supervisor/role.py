"""A role that the supervisor runs: its command line, number of processes, and drain time."""

from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings

from pgqueue_admin.formatting import numbers
from pgqueue_admin.workers.reporting.process_identity import ProcessIdentity

# Memory limits of a process, and a sentence for the limit exceeded.
MB = 1_000_000


@dataclass(frozen=True)
class MemoryLimit:
    """Two limits in MB; None: no limit. They apply to resident memory, as the kernel reports it."""

    drain_mb: int | None = None
    kill_mb: int | None = None

    def broken_drain(self, size: int) -> str:
        """Why a process of ``size`` bytes must drain, or ""."""
        return _broken(size, self.drain_mb)

    def broken_kill(self, size: int) -> str:
        """Why it must be killed, or ""."""
        return _broken(size, self.kill_mb)


NONE = MemoryLimit()


def _broken(size: int, limit_mb: int | None) -> str:
    """``612 MB, above its limit of 600 MB``, or ""."""
    if limit_mb is None or size <= limit_mb * MB:
        return ""
    return f"{numbers.size(size)}, above its limit of {numbers.size(limit_mb * MB)}"


class RoleKey(NamedTuple):
    # endpoint, sampler, source-sampler, alerter, ingester, source-ingester, expirer, history, trial, outbox-keeper
    kind: str
    endpoint: str = ""  # for a source-sampler or a source-ingester: the alias of its database


@dataclass(frozen=True)
class Role:
    key: RoleKey
    command: tuple[str, ...]
    want: int = 1
    drain_seconds: float = 10
    settings_module: str = ""  # empty: base settings
    known_settings: str = ""  # an endpoint's settings as text, for a child that starts while the database is down
    version: int = 0  # of those settings
    ceiling: MemoryLimit = NONE
    rolling: bool = False  # a rolling restart is in progress
    replace: ProcessIdentity | None = None  # the process to replace next in it
    hung_after: float = 0  # seconds without a sign of life until it is killed; 0: it gives none

    @property
    def label(self) -> str:
        if self.key.kind == "source-sampler":
            return f"sampler-{self.key.endpoint}"
        if self.key.kind == "source-ingester":
            return f"ingester-{self.key.endpoint}"
        return self.key.endpoint or self.key.kind


def singletons() -> list[Role]:
    """Roles with one process among all supervisors, whatever the number of hosts."""
    hung = settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"]
    hung_sampler = hung and hung + 2 * settings.PGQUEUE["SAMPLE_SECONDS"]
    history = Role(RoleKey("history"), ("history",), drain_seconds=30, hung_after=hung)
    return [
        *([history] if settings.PGQUEUE["SPARK_MASTER"] else []),
        Role(RoleKey("sampler"), ("sampler",), hung_after=hung_sampler),
        *(
            Role(RoleKey("source-sampler", alias), ("sampler", "--database", alias), hung_after=hung_sampler)
            for alias in settings.PGQUEUE["LOOKED_AT"]
        ),
        Role(RoleKey("ingester"), ("ingester",), hung_after=hung),
        *(
            Role(RoleKey("source-ingester", alias), ("ingester", "--database", alias), hung_after=hung)
            for alias, said in settings.PGQUEUE["LOOKED_AT"].items()
            if said.get("WRITABLE")
        ),
        Role(RoleKey("expirer"), ("lease", "watch"), hung_after=hung),
        Role(RoleKey("alerter"), ("alerter",), settings_module="pgqueue_admin.config.settings", hung_after=hung),
    ]


def trial() -> Role:
    """Wanted while a trial waits or runs; also a singleton."""
    hung = settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"]
    return Role(RoleKey("trial"), ("trial",), drain_seconds=2, hung_after=hung)


def outbox_keeper() -> Role:
    """Wanted while the upkeep of a foreign outbox is switched on; also a singleton."""
    return Role(RoleKey("outbox-keeper"), ("outbox_keeper",), hung_after=settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"])

"""Headers for reading: in four groups, with each one's meaning and what a retry does to it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

NAMES = ("Identity", "Failure", "Diagnostics", "Yours")
_PREFIX = "NServiceBus."
_DIAGNOSTICS = (
    "$.diagnostics.",
    "NServiceBus.OpenTelemetry.",
    "NServiceBus.Originating",
    "NServiceBus.Processing",
    "NServiceBus.Version",
    "ServiceControl.",
    "traceparent",
    "tracestate",
    "baggage",
)
_MEANS = {
    "NServiceBus.MessageId": "stays the same through every retry",
    "NServiceBus.CorrelationId": "the message this one answers",
    "NServiceBus.ConversationId": "shared by all messages that followed from one",
    "NServiceBus.RelatedTo": "the message being handled when this was sent",
    "NServiceBus.ReplyToAddress": "where an answer goes",
    "NServiceBus.TimeToBeReceived": "a copy; the row's expires column is what counts",
    "NServiceBus.Retries": "delayed retries so far",
    "NServiceBus.FailedQ": "where a retry goes to",
    "NServiceBus.DeliverAt": "",
    "NServiceBus.TimeSent": "",
}
_WHEN_REMOVED = {"NServiceBus.Retries.Timestamp": "removed; left in, it would switch delayed retries off"}

ReadTime = Callable[[str], datetime | None]


@dataclass(frozen=True, slots=True)
class DescribedHeader:
    name: str
    value: str | None
    means: str
    on_retry: str
    at: datetime | None  # the instant, if the value is a time

    @property
    def short(self) -> str:
        """Without the common prefix."""
        return self.name.removeprefix(_PREFIX) or self.name


@dataclass(frozen=True, slots=True)
class HeaderGroup:
    name: str
    headers: list[DescribedHeader]


def parts(headers: Mapping[str, str | None], removed: tuple[str, ...], read_time: ReadTime) -> list[HeaderGroup]:
    """The headers by group, without empty groups; ``removed``: the prefixes that a retry removes."""
    found: dict[str, list[DescribedHeader]] = {name: [] for name in NAMES}
    for name, value in headers.items():
        found[_part_of(name, removed)].append(_header(name, value, removed, read_time))
    return [HeaderGroup(name, listed) for name, listed in found.items() if listed]


def kept_and_removed(names: Iterable[str], removed: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The headers that a retry keeps, and those it removes."""
    kept: list[str] = []
    off: list[str] = []
    for name in names:
        (off if name.startswith(removed) else kept).append(name)
    return kept, off


def _part_of(name: str, removed: tuple[str, ...]) -> str:
    if name.startswith(removed):
        return "Failure"
    if name.startswith(_DIAGNOSTICS):
        return "Diagnostics"
    return "Identity" if name.startswith(_PREFIX) else "Yours"


def _header(name: str, value: str | None, removed: tuple[str, ...], read_time: ReadTime) -> DescribedHeader:
    off = name.startswith(removed)
    on_retry = _WHEN_REMOVED.get(name, "removed") if off else "kept"
    means = "JSON null" if value is None else _means(name, value)
    return DescribedHeader(name, value, means, on_retry, read_time(value) if value else None)


def _means(name: str, value: str) -> str:
    if name == "NServiceBus.EnclosedMessageTypes":
        count = sum(bool(part.strip()) for part in value.split(";"))
        return f"{count} types" if count > 1 else ""
    return _MEANS.get(name, "")

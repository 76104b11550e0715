"""Risks of an endpoint's new settings that its present ones do not have, shown before saving."""

from collections.abc import Iterator
from typing import NamedTuple

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.console.endpoints.health import EndpointHealth
from pgqueue_admin.models import Endpoint

_OF_A_MODE = {
    Endpoint.Mode.NONE: (
        "In the mode none a message is deleted before its handler runs: a process that ends loses what it has in "
        "flight, and what fails is tried once."
    ),
    Endpoint.Mode.RECEIVE_ONLY: (
        "In the mode receive only, and without an outbox, what handlers send is committed before the message ends: "
        "where that fails, the message comes back, is handled again, and everything it sends is sent twice."
    ),
}


class SettingWarning(NamedTuple):
    """``value`` must come back as seen before the setting is saved."""

    value: str
    sentence: str


def risks(known: EndpointHealth, wanted: Endpoint) -> list[SettingWarning]:
    return [*_of_the_delay(known, wanted), *_of_the_mode(known.endpoint, wanted)]


def _of_the_delay(known: EndpointHealth, wanted: Endpoint) -> Iterator[SettingWarning]:
    """The page, the log and the mails use the same words."""
    today = {fault.sentence for fault in known.faults}
    for fault in peek_delay_rules.faults(wanted, known.ttbrs):
        if fault.sentence not in today:
            yield SettingWarning(str(wanted.peek_delay_ms), fault.sentence)


def _of_the_mode(today: Endpoint, wanted: Endpoint) -> Iterator[SettingWarning]:
    mode = wanted.transaction_mode
    if wanted.why_no_outbox and not today.why_no_outbox:
        yield SettingWarning(f"{mode} {wanted.outbox}", wanted.why_no_outbox)
    if not wanted.has_outbox and mode != today.transaction_mode and (said := _OF_A_MODE.get(Endpoint.Mode(mode))):
        yield SettingWarning(mode, said)


def seen(found: list[SettingWarning]) -> str:
    """What the form sends back when the person saves despite the risks."""
    return " ".join(dict.fromkeys(risk.value for risk in found))

"""T15: an endpoint whose peek delay is out of range says so in its log, in the words that pages and checks use."""

import logging

from pgqueue_admin.formatting import warnings
from pgqueue_admin.transport.settings import LEAST_PEEK_DELAY, MOST_PEEK_DELAY, EndpointSettings

log = logging.getLogger("pgqueue_admin.transport")


def warn(endpoint: str, settings: EndpointSettings) -> None:
    milliseconds = round(settings.peek_delay * 1000)
    if settings.peek_delay > MOST_PEEK_DELAY:
        log.warning("%s: %s", endpoint, warnings.peek_too_long(milliseconds, ours=True).sentence)
    elif settings.peek_delay < LEAST_PEEK_DELAY:
        log.warning("%s: %s", endpoint, warnings.peek_too_short(milliseconds, ours=True).sentence)

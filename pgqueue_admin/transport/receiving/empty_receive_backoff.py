"""Peeks that see messages which no receive then gets: once is a race, again and again something keeps them."""

import logging

from pgqueue_admin.transport.receiving.receive_quota import ReceiveQuota

log = logging.getLogger("pgqueue_admin.transport")

_FIRST_SECONDS = 0.02


class EmptyReceiveBackoff:
    """Straight back to the peek after the first (T13); then 20, 40, 80 ms … up to the peek delay."""

    def __init__(self, name: str):
        self._name = name
        self._times = 0
        self._is_told = False

    def after(self, receives: ReceiveQuota, most: float) -> float:
        """How long to rest before the next peek."""
        self._times = self._times + 1 if receives.in_vain else 0
        self._is_told = self._is_told and self._times > 0
        if self._times < 2:
            return 0
        rest = min(most, _FIRST_SECONDS * 2.0 ** min(self._times - 2, 30))
        if rest == most and not self._is_told:
            self._is_told = True
            log.warning(
                "Endpoint %s sees messages in its queue and cannot take them, %d times now: look for a trigger or a "
                "row policy on the table that keeps rows from being deleted",
                self._name,
                self._times,
            )
        return rest

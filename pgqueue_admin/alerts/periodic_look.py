"""What the alerter asks of a database now and then, instead of at each of its turns."""

import time
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import django.db

from pgqueue_admin.dialects.errors import DatabaseError

_T = TypeVar("_T")


class PeriodicLook(ABC, Generic[_T]):
    """``every``: seconds between two looks."""

    def __init__(self, every: float) -> None:
        self._every, self._look_at = every, 0.0
        self._newest: _T | None = None

    def newest(self) -> _T | None:
        """As it was at the last look; None where that was not answered."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + self._every
            try:
                self._newest = self._look()
            except (DatabaseError, django.db.Error):
                self._newest = None
        return self._newest

    @abstractmethod
    def _look(self) -> _T:
        """Raises DatabaseError, django.db.Error."""

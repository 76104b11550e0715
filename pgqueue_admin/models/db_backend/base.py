"""Django's sessions. While a database is down, every page of the web server fails at once (docs/decisions/006). A
session whose answer is late is closed: after PGQUEUE_ANSWER_SECONDS in programs that run only short statements, else
shortly after the statement timeout, if there is one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

from django.conf import settings
from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base

from pgqueue_admin.dialects.postgresql import answer_limit, liveness, search_paths, session_settings
from pgqueue_admin.dialects.postgresql.driver_pool import ConnectionPool, connect_with

_here = threading.local()
_probes: ContextVar[bool] = ContextVar("probes", default=False)


def only_short_ones_here() -> None:
    """Limit this thread's Django statements to PGQUEUE_ANSWER_SECONDS; afterwards their session is closed."""
    _here.seconds = settings.PGQUEUE["ANSWER_SECONDS"]


@contextmanager
def of_its_own(wrapper: Any) -> Iterator[None]:
    """Use a separate session inside, none of the pages': a probe answers however many pages wait."""
    wrapper.close()
    token = _probes.set(True)
    try:
        yield
    finally:
        wrapper.close()
        _probes.reset(token)


class DatabaseWrapper(base.DatabaseWrapper):
    """``OPTIONS["pool"]["max_size"]``: the most sessions that a process keeps."""

    Database = answer_limit.DRIVER  # type: ignore[assignment]

    _lenders: ClassVar[dict[tuple[str, bool], ConnectionPool]] = {}

    @property
    def pool(self) -> ConnectionPool | None:
        options: dict[str, Any] = self.settings_dict["OPTIONS"].get("pool") or {}
        if self.alias == NO_DB_ALIAS or not options:
            return None
        is_probe = _probes.get()
        key = (self.alias, is_probe)
        if key not in self._lenders:
            made = ConnectionPool(self._open_session, 1 if is_probe else options["max_size"])
            self._lenders.setdefault(key, made)  # several threads may arrive at once: the first one's pool wins
        return self._lenders[key]

    def close_pool(self) -> None:
        for is_probe in (False, True):
            if lender := self._lenders.pop((self.alias, is_probe), None):
                lender.close()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        made = super().get_new_connection(conn_params)
        answer_limit.limit(made, getattr(_here, "seconds", None) or self._patience())
        return made

    def _patience(self) -> float | None:
        """Seconds to wait for an answer: a little longer than the server's statement timeout, if it has one."""
        limit = session_settings.statement_seconds(self.settings_dict["OPTIONS"].get("options") or "")
        answer: float = settings.PGQUEUE["ANSWER_SECONDS"]
        return max(answer, limit + liveness.FIRST_SECONDS) if limit else None

    def _open_session(self) -> Any:
        return connect_with(self.get_connection_params(), self._configure)

    def _configure(self, raw: Any) -> None:
        self._configure_connection(raw)  # type: ignore[attr-defined]
        session_settings.anew(raw, search_paths.of_alias(self.alias))

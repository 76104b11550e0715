"""The web server's database engine: while a database is down every page says so at once (docs/decisions/006)."""

from typing import Any, ClassVar

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base

from pgqueue_admin.dialects.postgresql.lender import Lender, connect_with


class DatabaseWrapper(base.DatabaseWrapper):
    """``OPTIONS["pool"]["max_size"]``: how many sessions a process keeps at most."""

    _lenders: ClassVar[dict[str, Lender]] = {}

    @property
    def pool(self) -> Lender | None:
        options: dict[str, Any] = self.settings_dict["OPTIONS"].get("pool") or {}
        if self.alias == NO_DB_ALIAS or not options:
            return None
        if self.alias not in self._lenders:
            made = Lender(self._open_session, options["max_size"])
            self._lenders.setdefault(self.alias, made)  # several threads may come at once: the first one's counts
        return self._lenders[self.alias]

    def close_pool(self) -> None:
        if lender := self._lenders.pop(self.alias, None):
            lender.close()

    def _open_session(self) -> Any:
        return connect_with(self.get_connection_params(), self._configure_connection)  # type: ignore[attr-defined]

"""Runs Django's models in the receive transaction: during handling, their alias uses the context's session."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, NoReturn
from weakref import WeakSet

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.postgresql.base import Cursor, ServerSideCursor
from django.db.backends.postgresql.psycopg_any import DjangoRangeDumper, Range, TextLoader
from django.db.transaction import Atomic, TransactionManagementError

from pgqueue_admin.dialects.postgresql import postgresql, search_paths
from pgqueue_admin.models.db_backend.base import DatabaseWrapper
from pgqueue_admin.transport import MessageContext
from pgqueue_admin.transport.errors import HandlerFinished
from pgqueue_admin.transport.sessions import fork_safety

ALIAS = DEFAULT_DB_ALIAS  # the router writes models through no other
NOT_YOURS = (
    "The transaction belongs to the message: it is committed once all handlers have returned, and rolled back when one "
    "raises. transaction.atomic() is a savepoint in it."
)
FAILED = (
    "A statement of a model failed, outside of a transaction.atomic() of its own, and was caught: nothing can be "
    "committed any more. Catch it around such a block."
)
LEFT_OPEN = "A handler returned within a block of transaction.atomic()."
_MARK = "models of "
_WHERE = ("HOST", "PORT", "NAME", "USER", "URL_OPTIONS", "URL_TARGET")
_WHERE_BY_OPTION = ("hostaddr", "service", "assume_role")


def is_one_database() -> bool:
    """Whether models and queues share one database and role, judged by DATABASE_URL and QUEUES_URL: one database spelt
    in two ways counts as two."""
    return _where(connections[ALIAS].settings_dict) == _where(connections["queues"].settings_dict)


def _where(entry: dict[str, Any]) -> list[Any]:
    options = entry.get("OPTIONS") or {}
    return [*(entry.get(name) or "" for name in _WHERE), *(options.get(name) or "" for name in _WHERE_BY_OPTION)]


@contextmanager
def shared(context: MessageContext) -> Iterator[None]:
    """Raises TransactionManagementError if the handlers left the transaction unable to commit."""
    own, forks = connections[ALIAS], fork_safety.forks
    lent = _lent_to(context, own.settings_dict)
    connections[ALIAS] = lent
    try:
        try:
            yield
        finally:
            fork_safety.end_child_since(forks)  # before a forked child uses its parent's session
        context.after_commit += lent.settled()
    finally:
        connections[ALIAS] = own
        lent.take_back()


_unused = threading.local()  # a wrapper that no handler touched: creating one costs more than everything else here


def _lent_to(context: MessageContext, settings_dict: dict[str, Any]) -> "SharedSession":
    lent: SharedSession | None = _unused.__dict__.pop("session", None)
    if lent is None or lent.settings_dict is not settings_dict:
        return SharedSession(settings_dict, context)
    lent.lend(context)
    return lent


class SharedSession(DatabaseWrapper):
    """To Django an atomic block is open, which only we end. The session is borrowed at its first use: a message whose
    handlers use no models costs no round trip."""

    pool = None

    def __init__(self, settings_dict: dict[str, Any], context: MessageContext):
        super().__init__(settings_dict, ALIAS)
        self._context: MessageContext | None = context
        self._before: tuple[str, str] | None = None  # the handlers' search_path and application_name
        self._asks_for_types = False
        self._is_taken = False  # whether search_path is set, unless a savepoint rollback undid it
        self._cursors: WeakSet[Any] = WeakSet()
        self.in_atomic_block = True
        self.atomic_blocks = [Atomic(ALIAS, savepoint=False, durable=False)]  # refuses a durable block inside

    def lend(self, context: MessageContext) -> None:
        """Reuse it for the next message: it carries nothing of the one before."""
        self._context = context

    @property
    def _is_untouched(self) -> bool:
        said = self.needs_rollback or self.errors_occurred or self.force_debug_cursor or self.allow_thread_sharing
        left = self.run_on_commit or self.execute_wrappers or self.savepoint_ids
        return self.connection is None and not (said or left)

    def connect(self) -> None:
        if self._context is None:
            raise HandlerFinished
        self.connection = self._context.share_connection(self._give_path_back).raw

    def create_cursor(self, name: str | None = None) -> Any:
        """Reads values as Django's own sessions do, except for timestamps: the engine's sessions give UTC as well."""
        plain = {"row_factory": self.Database.rows.tuple_row}
        made: Any = _ServerSideCursor if name else _Cursor
        cursor = made(self.connection, name, scrollable=False, **plain) if name else made(self.connection, **plain)
        cursor.before = self.take_path
        for each in ("jsonb", "inet", "cidr"):
            cursor.adapters.register_loader(each, TextLoader)
        cursor.adapters.register_dumper(Range, DjangoRangeDumper)
        self._cursors.add(cursor)
        self._read_extensions(cursor)
        return cursor

    def _read_extensions(self, cursor: Any) -> None:
        """Support hstore and citext[] as django.contrib.postgres does for sessions it is notified of. Here per cursor,
        because handlers share the session."""
        if self._asks_for_types or not apps.is_installed("django.contrib.postgres"):
            return
        from django.contrib.postgres.signals import register_type_handlers

        self._asks_for_types = True  # its first use queries by a cursor itself
        try:
            register_type_handlers(SimpleNamespace(vendor=self.vendor, alias=self.alias, connection=cursor))
        finally:
            self._asks_for_types = False

    def take_path(self) -> None:
        """Set Django's search_path, so that names are those of the console's schema (docs/decisions/012)."""
        raw = self.connection
        if raw is None:
            raise HandlerFinished
        if _status(raw) == "IDLE":  # a handler ended it: statements would commit by themselves
            raise TransactionManagementError(NOT_YOURS)
        if _status(raw) == "INERROR" or self._has_path():
            return
        ours, name = search_paths.CONSOLE, raw.info.parameter_status("application_name") or ""
        path = self._find_by(ours, f"{_MARK}{name}")
        if path == ours and self._before:  # application_name was changed meanwhile, or a pipeline has not reported ours
            path = self._before[0]
        self._before, self._is_taken = (path, name), True

    def _has_path(self) -> bool:
        return bool((self.connection.info.parameter_status("application_name") or "").startswith(_MARK))

    def _give_path_back(self) -> None:
        if self._before is None or _status(self.connection) != "INTRANS":
            return
        was_taken, self._is_taken, is_marked = self._is_taken, False, self._has_path()
        if not was_taken and not is_marked:
            return
        name = self.connection.info.parameter_status("application_name") or ""
        found = self._find_by(self._before[0], self._before[1] if is_marked else name)
        if not is_marked and found != search_paths.CONSOLE:
            self._find_by(found, name)  # a savepoint rollback had restored it

    def _find_by(self, path: str, name: str) -> str:
        statement = postgresql().shared_session.find_by()
        row = self.connection.execute(statement, {"path": path, "name": name}).fetchone()
        return str(row[0])

    def settled(self) -> list[Callable[[], None]]:
        """Callbacks for after the commit. Raises TransactionManagementError."""
        if self.needs_rollback:
            raise TransactionManagementError(FAILED) from getattr(self, "rollback_exc", None)
        if self.savepoint_ids:
            raise TransactionManagementError(LEFT_OPEN)
        self._give_path_back()
        return [call for _, call, *_ in self.run_on_commit]

    def take_back(self) -> None:
        """Detach the session: a handler that kept it, or a cursor, would write into the transaction of another message.

        Does not close cursors of a busy session, which the engine closes: that would wait for unread rows.
        """
        for cursor in list(self._cursors) if self._cursors and _status(self.connection) != "ACTIVE" else []:
            with suppress(self.Database.Error):
                cursor.close()
        if self._is_untouched:
            _unused.session = self
        self.connection = self._context = None

    def validate_no_atomic_block(self) -> NoReturn:
        """Django calls it before each commit, rollback and change of autocommit."""
        raise TransactionManagementError(NOT_YOURS)

    def close(self) -> None:
        """Does nothing, as in any atomic block: the session is the engine's."""

    def close_if_unusable_or_obsolete(self) -> None:
        """Does nothing; called by ``close_old_connections``."""

    def ensure_timezone(self) -> bool:
        return False  # it is in UTC, as Django's are


def _status(raw: Any) -> str:
    return str(raw.info.transaction_status.name)  # UNKNOWN if the session is lost


class _Prepared:
    """A cursor whose statements resolve names by Django's search_path."""

    before: Callable[[], None]

    def execute(self, *args: Any, **kwargs: Any) -> Any:
        self.before()
        return super().execute(*args, **kwargs)  # type: ignore[misc]

    def executemany(self, *args: Any, **kwargs: Any) -> Any:
        self.before()
        return super().executemany(*args, **kwargs)  # type: ignore[misc]

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        self.before()
        return super().copy(*args, **kwargs)  # type: ignore[misc]

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        self.before()
        return super().stream(*args, **kwargs)  # type: ignore[misc]


class _Cursor(_Prepared, Cursor): ...


class _ServerSideCursor(_Prepared, ServerSideCursor): ...

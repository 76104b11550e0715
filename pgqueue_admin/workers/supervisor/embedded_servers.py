"""The embedded servers that ``manage.py up`` starts where no URL names others."""

import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from django.conf import settings

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import state_file
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.embedded.valkey import Valkey
from pgqueue_admin.workers.reporting.run_directory import plain_log
from pgqueue_admin.workers.supervisor.backoff import Backoff

DATABASE = "pgqueue"
ROLE = "pgqueue"  # of all programs: it owns the database and is no superuser
# Little to replay, so it restarts quickly after a kill. No replicas, so WAL holds only what crash recovery needs.
_CONF = {"checkpoint_timeout": "1min", "wal_level": "minimal", "max_wal_senders": 0}


class Server(Protocol):
    port: int

    @property
    def running(self) -> bool: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class EmbeddedServers:
    """Started and healed in order, stopped in reverse; the state file records their addresses."""

    def __init__(self, var: Path):
        self._var = var
        self._state = state_file.read(var)
        self._backoff = Backoff(time.monotonic, longest=2.0)
        self._started = 0.0
        ours = settings.PGQUEUE["OURS"]
        self.postgresql = self._postgresql() if ours["console"] else None
        self.valkey = self._valkey() if ours["broker"] else None
        self._all: dict[str, Server] = {}

    def start_postgresql(self) -> PostgreSQL | None:
        if self.postgresql:
            self._all["PostgreSQL"] = self.postgresql
            self.postgresql.start()
            _make_database(self.postgresql)
        return self.postgresql

    def start_valkey(self) -> Valkey | None:
        if self.valkey:
            self._all["Valkey"] = self.valkey
            self.valkey.start()
        return self.valkey

    def write_state(self) -> None:
        """Always stores the session key: a key per process would sign everybody out at each restart."""
        known = replace(self._state, secret_key=self._state.secret_key or secrets.token_urlsafe(48))
        if self.postgresql:
            known = replace(known, dsn=self.postgresql.dsn(DATABASE, ROLE), postgresql_port=self.postgresql.port)
        if self.valkey:
            known = replace(known, broker_url=self.valkey.url, valkey_port=self.valkey.port)
        state_file.write(self._var, known)
        self._started = time.monotonic()

    def checkpoint(self) -> None:
        if self.postgresql:
            dialect = postgresql()
            with dialect.connect(self.postgresql.dsn()) as connection:
                connection.run(dialect.server.checkpoint())

    def look(self) -> str | None:
        """Restart a server that has ended; return a sentence to print, if any."""
        down = next((name for name, server in self._all.items() if not server.running), None)
        if down is None or self._backoff.waiting:
            return None
        self._backoff.crashed(time.monotonic() - self._started)
        self._started = time.monotonic()
        try:
            self._all[down].start()
        except (ServerFailed, OSError) as error:  # a full disk, or a killed server's session holds its memory
            return f"{down} ended and cannot be started yet. {error}"
        return f"{down} ended and was started again in {time.monotonic() - self._started:.1f} s"

    def stop(self) -> None:
        for server in reversed(self._all.values()):
            server.stop()

    @property
    def outside(self) -> Path | None:
        """The data folder outside the project, used if the server's account could not enter the one inside."""
        wanted = cluster_folder(self._var)
        return self.postgresql.home if self.postgresql and self.postgresql.home != wanted.resolve() else None

    def _postgresql(self) -> PostgreSQL:
        port = self._state.postgresql_port
        return PostgreSQL(cluster_folder(self._var), port, conf=_CONF, log=plain_log("postgresql"))

    def _valkey(self) -> Valkey:
        return Valkey(self._var / "valkey", self._state.valkey_port, log=plain_log("valkey"))


def cluster_folder(var: Path) -> Path:
    return var / "postgresql"


def _make_database(server: PostgreSQL) -> None:
    sql = postgresql().server
    with postgresql().connect(server.dsn()) as connection:
        if not connection.value(sql.role_exists(), {"name": ROLE}):
            password = urlsplit(server.dsn(DATABASE, ROLE)).password
            connection.run(connection.value(sql.creation_of_role(), {"name": ROLE, "password": password}))
        if not connection.value(sql.database_exists(), {"name": DATABASE}):
            connection.run(sql.create_database(name=DATABASE, owner=ROLE))

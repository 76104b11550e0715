"""The archive's table, dumped with pg_dump and restored in place of the existing one."""

import subprocess
from pathlib import Path

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded import binaries


def dumped(dsn: str, folder: Path, *tables: str) -> Path:
    """The archive and these tables of its schema."""
    named = [option for name in ("message_archive", *tables) for option in ("-t", f"messages.{name}")]
    _run("pg_dump", dsn, *named, "-f", folder / "archive.sql")
    return folder / "archive.sql"


def restored(database: Connection, dsn: str, dump: Path, *tables: str) -> None:
    for name in ("message_archive", *tables):
        database.run(f"drop table messages.{name} cascade")
    _run("psql", dsn, "-qX", "-v", "ON_ERROR_STOP=1", "-f", dump)


def _run(program: str, dsn: str, *options: str | Path) -> None:
    command = [binaries.postgresql() / program, "-d", dsn, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

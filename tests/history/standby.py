"""A real standby of this run's server, by streaming replication."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from pgqueue_admin.embedded import binaries, os_account
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests.server_location import server_folder

PASSWORD = "postgres.password"


@contextmanager
def following(server: PostgreSQL) -> Iterator[PostgreSQL]:
    """A standby with all databases that the server has now."""
    with server_folder() as folder:
        made = PostgreSQL(folder, conf={"fsync": "off", "hot_standby": "on"})
        _copy(server, made)
        made.start()
        yield made
        made.stop()


def _copy(server: PostgreSQL, made: PostgreSQL) -> None:
    whose = os_account.unprivileged()
    copy = [binaries.runnable(binaries.postgresql(), whose, made.home) / "pg_basebackup", "-d", server.dsn()]
    copy += ["-D", made.home / "data", "-R", "-c", "fast"]
    subprocess.run(list(map(str, copy)), check=True, cwd=made.home, **whose.popen(made.home))
    shutil.copy(server.home / PASSWORD, made.home / PASSWORD)
    whose.own(made.home / PASSWORD)


def there(follower: PostgreSQL, database: str) -> str:
    """The DSN of the same database on the standby."""
    return follower.dsn(urlsplit(database).path.removeprefix("/"))

"""A standby of this run's server: a real one, by streaming replication."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pgqueue_admin.embedded import binaries, cluster_location, os_account
from pgqueue_admin.embedded.postgresql import PostgreSQL
from tests import server_location

PASSWORD = "postgres.password"


@contextmanager
def following(server: PostgreSQL) -> Iterator[PostgreSQL]:
    """With all databases that it has now."""
    root = Path(tempfile.mkdtemp(prefix="pgqueue-cluster-", dir=server_location.folder()))
    root.chmod(0o755)
    made = PostgreSQL(root / "postgresql", conf={"fsync": "off", "hot_standby": "on"})
    whose = os_account.unprivileged()
    copy = [binaries.runnable(binaries.postgresql(), whose, made.home) / "pg_basebackup", "-d", server.dsn()]
    copy += ["-D", made.home / "data", "-R", "-c", "fast"]
    subprocess.run(list(map(str, copy)), check=True, cwd=made.home, **whose.popen(made.home))
    shutil.copy(server.home / PASSWORD, made.home / PASSWORD)
    whose.own(made.home / PASSWORD)
    made.start()
    yield made
    made.stop()
    cluster_location.remove(root / "postgresql")
    shutil.rmtree(root, ignore_errors=True)


def there(follower: PostgreSQL, database: str) -> str:
    """The DSN of the same database on the standby."""
    return follower.dsn(urlsplit(database).path.removeprefix("/"))

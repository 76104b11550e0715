"""An account that is only a number, as clusters give to containers: no name and no home."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAY = "+dac_read_search"  # Python may be in root's home
NUMBER = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--inh-caps", MAY, "--ambient-caps", MAY]
ASKS = """
import asyncio, sys
from pgqueue_admin.alerts import connection_security
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.live import listener
dsn = sys.argv[1]
with postgresql().connect(dsn) as session:
    print("asked", session.value("show search_path"))
async def hear():
    session = await listener.opened(dsn)
    await session.close()
    print("heard")
asyncio.run(hear())
print("authority", connection_security._authority({}))
"""


def test_its_sessions_open(database: str) -> None:
    """Without root the test cannot change to the number: then only HOME is missing."""
    account = NUMBER if os.geteuid() == 0 else []
    environment = {
        **{"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        **{"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.base_settings", "SECRET_KEY": "of the tests"},
        **{"DATABASE_URL": database, "QUEUES_URL": database, "PGQUEUE_STATE_DIR": "/nonexistent"},
    }
    command = [*account, sys.executable, "-c", ASKS, database]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, timeout=300)
    assert done.stdout.split("\n")[:3] == ["asked pg_catalog, pg_temp", "heard", "authority False"], done.stderr

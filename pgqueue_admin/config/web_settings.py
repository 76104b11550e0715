"""What the web server runs on: settings, and a pool of connections. A pool would not survive Celery's fork."""

from pgqueue_admin.config.settings import *  # noqa: F403
from pgqueue_admin.config.settings import DATABASES as _PLAIN

_KEPT = {"connect_timeout": 2, "pool": {"max_size": 8}}  # a page does not wait longer for a server that says nothing
DATABASES = {
    alias: {**entry, "ENGINE": "pgqueue_admin.records.sessions", "OPTIONS": {**entry["OPTIONS"], **_KEPT}}
    for alias, entry in _PLAIN.items()
}

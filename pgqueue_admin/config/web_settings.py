"""What the web server runs on: settings, and a pool of connections. A pool would not survive Celery's fork."""

from pgqueue_admin.config.settings import *  # noqa: F403
from pgqueue_admin.config.settings import DATABASES as _PLAIN

# After an outage nobody waits for as long as it lasted: a pool that goes on trying pauses longer and longer between.
_POOL = {"min_size": 0, "max_size": 8, "timeout": 5, "reconnect_timeout": 2}
DATABASES = {
    # asked before it is lent: after an outage the pool is full of sessions that are none
    alias: {**entry, "CONN_HEALTH_CHECKS": True, "OPTIONS": {**entry["OPTIONS"], "pool": _POOL}}
    for alias, entry in _PLAIN.items()
}

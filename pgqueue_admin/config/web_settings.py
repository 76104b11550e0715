"""Settings of the web server: the full settings and a connection pool. A pool would not survive Celery's fork."""

from pgqueue_admin.config.env import called, limited
from pgqueue_admin.config.settings import *  # noqa: F403
from pgqueue_admin.config.settings import DATABASES as _PLAIN

_KEPT = {"connect_timeout": 2, "pool": {"max_size": 8}}  # seconds a page waits for an unresponsive server
STATEMENT_SECONDS = 10.0  # the longest a page waits for the console's own tables
_CONSOLE = called("web", limited(_PLAIN["default"], STATEMENT_SECONDS))
DATABASES = {
    alias: {**entry, "OPTIONS": {**entry["OPTIONS"], **_KEPT}}
    for alias, entry in {**_PLAIN, "default": _CONSOLE}.items()
}

"""What the web server runs on: settings, and a pool of connections. A pool would not survive Celery's fork."""

from pgqueue_admin.config.env import called, limited
from pgqueue_admin.config.settings import *  # noqa: F403
from pgqueue_admin.config.settings import DATABASES as _PLAIN

_KEPT = {"connect_timeout": 2, "pool": {"max_size": 8}}  # a page does not wait longer for a server that says nothing
STATEMENT_SECONDS = 10.0  # longer no page waits for the console's own tables
_CONSOLE = called("web", limited(_PLAIN["default"], STATEMENT_SECONDS))
DATABASES = {
    alias: {**entry, "OPTIONS": {**entry["OPTIONS"], **_KEPT}}
    for alias, entry in {**_PLAIN, "default": _CONSOLE}.items()
}

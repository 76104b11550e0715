"""The command line: ``manage.py`` in a checkout, ``pgqueue-admin`` where the package is installed."""

import os
import signal
import sys


def main() -> None:
    if sys.argv[1:2] == ["up"]:
        _end_at_once_on_ctrl_c()
    _refuse_settings_of_before(os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgqueue_admin.config.settings"))
    try:
        from django.core.management import execute_from_command_line
        from django.db import OperationalError
    except ModuleNotFoundError as error:
        if error.name != "django":
            raise
        sys.exit("The console is not installed, only the engine: pip install 'pgqueue-admin[console]'")

    from pgqueue_admin.dialects.errors import DatabaseDown

    try:
        execute_from_command_line(sys.argv)
    except (OperationalError, DatabaseDown) as error:
        sys.exit(f"The database does not answer{_what_starts_it()}.\n{error}")


def _refuse_settings_of_before(module: str) -> None:
    """Exit if the settings module has its former name, as in a systemd unit copied before the rename."""
    if module == "pgqueue_admin.config.worker_settings":
        now = "pgqueue_admin.config.base_settings"
        sys.exit(f"DJANGO_SETTINGS_MODULE is {module}, which is {now} now: change it in the unit, or copy it again.")


def _what_starts_it() -> str:
    """How to start the embedded database; empty if both databases are given by URL."""
    from pgqueue_admin.config.env import INSTALLED, OURS

    starter = "pgqueue-admin up" if INSTALLED else "make run"
    return f"; the embedded one runs while `{starter}` does" if OURS["console"] or OURS["queues"] else ""


def _end_at_once_on_ctrl_c() -> None:
    """Die on SIGINT until ``up`` handles signals: nothing is started yet.

    KeyboardInterrupt may be lost while modules load, because Python drops what a callback or ``__del__`` raises;
    ``up`` would start regardless.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

#!/usr/bin/env python
"""Django's command line."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pgqueue_admin.config.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    from pgqueue_admin.dialects.errors import DatabaseDown

    try:
        execute_from_command_line(sys.argv)
    except (OperationalError, DatabaseDown) as error:
        sys.exit(f"The database does not answer; the embedded one runs while `make run` does.\n{error}")


if __name__ == "__main__":
    main()

"""Forks itself for each script on its standard input, and says with what that ended.

What it imports before reads neither the environment nor Django's settings: each script sets up Django by itself.
"""

import gc
import json
import os
import sys
import traceback
from importlib import import_module
from typing import Any

BEFORE = (
    *("celery.app.base", "celery.result", "environ", "kombu", "psycopg"),
    *("django.core.management", "django.db.models", "django.forms", "django.template.defaulttags", "django.urls"),
    *("pgqueue_admin.archive.ingester", "pgqueue_admin.lease", "pgqueue_admin.transport.endpoint"),
)


def main() -> None:
    for name in BEFORE:
        import_module(name)
    gc.freeze()  # what it has is not looked through again in each fork
    for line in sys.stdin:
        process = os.fork()
        if not process:
            run(*json.loads(line))
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run(script: str, arguments: list[str], environment: dict[str, str]) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what it prints is no answer of ours
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    about: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(script, "<string>", "exec"), about)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()

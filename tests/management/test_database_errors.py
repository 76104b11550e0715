"""Commands, each in a process of its own, where nothing is started and where a database of others does not answer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pgqueue_admin.management.commands.dead import NO_DATABASE

ROOT = Path(__file__).parent.parent.parent


def run(var: Path, *argv: str, **environment: str) -> tuple[int, str]:
    here = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "QUEUES_URL"}}
    here |= {"PGQUEUE_STATE_DIR": str(var), "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings", **environment}
    command = [sys.executable, "manage.py", *argv]
    ran = subprocess.run(command, cwd=ROOT, env=here, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(
    ("argv", "code"), [(["dead", "list"], NO_DATABASE), (["endpoint", "Sales"], 1), (["engine_schema"], 1)]
)
def test_where_nothing_is_started_they_say_what_starts_it(tmp_path: Path, argv: list[str], code: int) -> None:
    ended, said = run(tmp_path, *argv)
    assert ended == code
    assert "make run" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(("argv", "code"), [(["dead", "list"], NO_DATABASE), (["migrate", "--check"], 1)])
def test_of_a_database_of_others_nobody_says_that(tmp_path: Path, argv: list[str], code: int) -> None:
    ended, said = run(tmp_path, *argv, DATABASE_URL="postgresql://a@127.0.0.1:1/b", SECRET_KEY="k" * 64)
    assert ended == code
    assert "Connection refused" in said
    assert "make run" not in said

"""examples/lease/README.md, followed step by step on a database."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded import binaries
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "examples/lease/README.md").read_text(encoding="utf-8")
SHELL = re.findall(r"```sh(?: (\w+))?\n(.*?)```", PAGE, re.DOTALL)
(PRINTED,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def environment(dsn: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{binaries.postgresql()}:{os.environ['PATH']}"
    return {"DSN": dsn, "PATH": path, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "PAGER": ""}


def test_its_steps_lead_where_it_says(database: str, connection: Connection) -> None:
    steps = dict(zip(("tables", "worker", "publish", "look"), SHELL, strict=True))
    given = environment(database)

    def run(step: str) -> str:
        command = ["sh", "-eu", "-c", steps[step][1]]
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("tables")
    worker = ["sh", "-c", f"exec {steps['worker'][1]}"]
    with subprocess.Popen(worker, cwd=ROOT, env=given, stdout=subprocess.PIPE, text=True) as running:
        try:
            run("publish")
            assert running.stdout
            (said,) = re.findall(r"The worker prints `(.*)`\.", PAGE)
            assert running.stdout.readline() == f"{said}\n"
            until(lambda: connection.value("select count(*) from messages.message_archive") == 3)
        finally:
            running.send_signal(signal.SIGTERM)
        running.wait(60)
    assert lines(run("look")) == lines(PRINTED)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def test_readme_names_the_workers_packages() -> None:
    (told,) = re.findall(r"It needs (.*), no Django", PAGE)
    assert re.findall(r"`([a-z]+)", told) == ["psycopg", "orjson", "fastjsonschema"]

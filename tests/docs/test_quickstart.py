"""The quickstart's programs run as they stand, and print what the page says."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pgqueue_admin.dialects.postgresql import postgresql

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/quickstart-engine.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"## ([^\n]+)\n+```python\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL)
DSN = "postgresql://user@host/database"


def test_every_program_of_the_page_is_run_here() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") >= 5
    assert all(DSN in program for _, program, _ in PROGRAMS)


@pytest.mark.parametrize(("program", "printed"), [each[1:] for each in PROGRAMS], ids=[each[0] for each in PROGRAMS])
def test_it_prints_what_the_page_says(program: str, printed: str, database: str) -> None:
    from pgqueue_admin.transport import Endpoint

    Endpoint("Sales", database).create_queues()
    command, bare = [sys.executable, "-c", program.replace(DSN, database)], {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=bare) as running:
        assert running.stdout
        assert [running.stdout.readline() for _ in printed.splitlines()] == printed.splitlines(keepends=True)
        running.send_signal(signal.SIGINT)


def test_the_statement_of_the_page_reads_a_queue(database: str) -> None:
    from pgqueue_admin.transport import Endpoint

    endpoint = Endpoint("Sales", database)
    endpoint.create_queues()
    endpoint.send("Sales", {"number": 1}, type="Shop.PlaceOrder")
    (statement,) = re.findall(r"```sql\n(.*?);\n```", PAGE, re.DOTALL)
    with postgresql().connect(database) as connection:
        assert [tuple(row) for row in connection.all(statement)] == [(1, "Shop.PlaceOrder", '{"number":1}')]
    endpoint.stop()

"""The quickstart's programs run unchanged and print what the page says."""

import re
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from pgqueue_admin.dialects.postgresql import postgresql

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/tutorials/engine-without-django.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"## ([^\n]+)\n+```python\n(.*?)```\n+```text\n(.*?)```", PAGE, re.DOTALL)
DSN = "postgresql://user@host/database"
NAMED = re.findall(r"`([a-z_]+)(?:\[\w+\])?`", PAGE.partition("##")[0])
BROUGHT_BY = {"psycopg": ["psycopg-binary", "typing_extensions"]}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page tells its reader to install, and none of this Python's other packages."""
    folder = tmp_path_factory.mktemp("installed")
    for name in [*NAMED, *(each for named in NAMED for each in BROUGHT_BY.get(named, []))]:
        for top in {file.parts[0] for file in metadata.files(name) or [] if file.parts[0] != ".."}:
            (folder / top).symlink_to(str(metadata.distribution(name).locate_file(top)))
    return folder


def test_every_program_of_the_page_is_run_here() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") >= 5
    assert all(DSN in program for _, program, _ in PROGRAMS)


@pytest.mark.parametrize(("program", "printed"), [each[1:] for each in PROGRAMS], ids=[each[0] for each in PROGRAMS])
def test_program_prints_what_the_page_says(program: str, printed: str, database: str, installed: Path) -> None:
    from pgqueue_admin.transport import Endpoint

    Endpoint("Sales", database).create_queues()
    command = [sys.executable, "-S", "-c", program.replace(DSN, database)]  # without other installed packages
    bare = {"PYTHONPATH": f"{ROOT}:{installed}"}
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
    with postgresql().connect(database, for_handlers=True) as connection:
        assert [tuple(row) for row in connection.all(statement)] == [(1, "Shop.PlaceOrder", '{"number":1}')]
    endpoint.stop()

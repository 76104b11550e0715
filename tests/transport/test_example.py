"""The ten lines in examples/ run unchanged."""

import ast
import subprocess
import sys
from pathlib import Path

from tests.transport.recording_observer import rows
from tests.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "ten_lines.py"


def test_ten_lines_run(database):
    process = subprocess.Popen(
        [sys.executable, EXAMPLE, database],
        stdout=subprocess.PIPE,
        text=True,
        cwd=EXAMPLE.parents[1],
        env={"PYTHONPATH": str(EXAMPLE.parents[1])},
    )
    with process:
        try:
            assert process.stdout.readline() == "placed 42\n"
            until(lambda: rows(database, "Sales") == [])
        finally:
            process.terminate()


def test_example_has_ten_lines_and_no_django():
    tree = ast.parse(EXAMPLE.read_text())
    lines = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    assert len(lines) <= 12
    assert "django" not in EXAMPLE.read_text().partition('"""\n')[2].lower()

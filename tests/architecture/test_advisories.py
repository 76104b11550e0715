"""The CI step for advisories fails on an advisory, reports and passes without an answer, and never hangs."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEP = ROOT / ".ci/advisories.py"
_spec = importlib.util.spec_from_file_location("advisories", STEP)
assert _spec
assert _spec.loader
advisories = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(advisories)
WELL = {"name": "six", "version": "1.17.0", "vulns": []}
UNKNOWN = {"name": "ours", "skip_reason": "Dependency not found on PyPI and could not be audited: ours (1)"}


def test_no_way_to_the_database_is_said_and_passes() -> None:
    nowhere = os.environ | dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9")
    done = subprocess.run([sys.executable, STEP], cwd=ROOT, env=nowhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The database of advisories cannot be reached here (")
    assert len(done.stdout.splitlines()) == 1


def test_an_index_without_advisories_is_no_clean_bill(capsys: pytest.CaptureFixture[str]) -> None:
    assert advisories.judged([UNKNOWN]) == 0
    assert "cannot be reached here (the index has no advisories): nothing was compared." in capsys.readouterr().out


def test_an_advisory_fails_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    fault = {"id": "PYSEC-2026-1", "fix_versions": ["2.0"]}
    assert advisories.judged([WELL, UNKNOWN, {"name": "old", "version": "1.0", "vulns": [fault]}]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said == ["old 1.0: PYSEC-2026-1, mended in 2.0", "2 packages asked for, 1 advisories, 1 without an answer."]
    assert advisories.judged([WELL]) == 0

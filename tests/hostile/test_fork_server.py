"""A fork of a started interpreter answers as one that is started: the room's pages ask it for finished messages."""

import json
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from pgqueue_admin.history.storage import message_lookup
from tests.fork_server import ROOT, ForkServer
from tests.history.files import SCHEMA, TEN, message
from tests.hostile.payloads import BODIES, MARKUP, TURNED, headers

SCAN = "pgqueue_admin.history.storage.parquet_scan"


@pytest.fixture
def question(tmp_path: Path) -> str:
    rows = [message(seq, headers=headers(), body=body, type=MARKUP + TURNED) for seq, body in enumerate(BODIES)]
    path = tmp_path / "part.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    stretch = {"since": TEN.isoformat(), "until": (TEN + timedelta(seconds=1)).isoformat(), "within": 8}
    asked = {"paths": [str(path)], "equal": {}, "unequal": {}, "between": {}, "most": 100, "part": "whole"}
    return json.dumps(asked | stretch)


def test_a_fork_answers_as_a_program_that_is_started(question: str, fork_server: ForkServer) -> None:
    absent = json.dumps({**json.loads(question), "paths": ["/not/there"]})
    assert vars(message_lookup)["subprocess"] is fork_server
    told = []
    for asked in (question, absent, "no JSON"):
        ways = [
            run(
                [sys.executable, "-m", SCAN, "messages"],
                input=asked,
                capture_output=True,
                text=True,
                timeout=20,
                cwd=ROOT,
            )
            for run in (subprocess.run, fork_server.run)
        ]
        started, forked = [(each.returncode, each.stdout, each.stderr.splitlines()[-1:]) for each in ways]
        assert started == forked
        told.append(started)
    assert len(json.loads(told[0][1])["rows"]) == len(BODIES)
    assert [code for code, _, _ in told] == [0, 1, 1]


def test_a_fork_that_does_not_end_is_ended() -> None:
    command = [sys.executable, "-m", "http.server", "0"]
    with closing(ForkServer()) as server, pytest.raises(subprocess.TimeoutExpired):
        server.run(command, timeout=1)

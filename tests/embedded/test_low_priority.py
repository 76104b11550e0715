"""Whoever goes last does so against all others, in whatever session they are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SAY = """
import os
from pathlib import Path
from pgqueue_admin.osproc.low_priority import go_last
go_last()
group = Path("/proc/self/autogroup")
session = group.read_text().split()[-1] if group.exists() else "none"
print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), session)
"""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel does not group by session")
@pytest.mark.parametrize(("alone", "session"), [(True, "10"), (False, "0")])
def test_a_session_of_its_own_goes_last_and_another_s_stays(alone: bool, session: str) -> None:
    shell = [sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])", _SAY]
    command = [sys.executable, "-c", _SAY] if alone else shell
    said = subprocess.check_output(command, start_new_session=True, text=True).split()
    assert said == [str(os.SCHED_BATCH), "19", session]

"""A process in the idle group yields to all others, whatever their session."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.osproc import idle_cgroup

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


# A process in the idle group stays there with its children, and gets CPU only when nobody else wants it.
_PARENT = "import subprocess, sys; sys.stdin.readline(); subprocess.run(['cat', '/proc/self/cgroup'])"


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A group of this test's own, beside that of a driver on this machine."""
    monkeypatch.setattr(idle_cgroup, "NAME", f"pgqueue-test-{tmp_path.name}")
    place = idle_cgroup._place()
    yield place
    if place.exists():
        place.rmdir()


def test_child_processes_are_in_the_idle_group(group: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT], stdin=-1, stdout=-1, text=True) as process:
        if not idle_cgroup.put(process.pid):
            process.communicate("go\n")
            pytest.skip("the system lets us make no control group")
        said, _ = process.communicate("go\n")
    assert f"/{group.name}\n" in said
    assert (group / "cpu.idle").read_text() == "1\n"


def test_idle_group_takes_a_share_while_insisting(group: Path) -> None:
    with subprocess.Popen(["cat"], stdin=-1) as process:
        if not idle_cgroup.put(process.pid):
            process.communicate()
            pytest.skip("the system lets us make no control group")
        idle_cgroup.insist()
        insisting = (group / "cpu.idle").read_text()
        idle_cgroup.stand_back()
        process.communicate()
    assert [insisting, (group / "cpu.idle").read_text()] == ["0\n", "1\n"]


def test_a_system_without_such_groups_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The functions do nothing there, and do not fail."""
    (tmp_path / "cgroup").write_text("3:memory:/\n")
    monkeypatch.setattr(idle_cgroup, "_PROC", tmp_path)
    assert not idle_cgroup.put(1)
    idle_cgroup.insist()
    idle_cgroup.stand_back()


def test_a_read_only_hierarchy_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in containers: the mount exists, and the folder of our group cannot be created."""
    (tmp_path / "cgroup").write_text("0::/unit\n")
    (tmp_path / "mountinfo").write_text(f"31 23 0:28 / {tmp_path}/nowhere ro - cgroup2 cgroup2 ro\n")
    monkeypatch.setattr(idle_cgroup, "_PROC", tmp_path)
    assert idle_cgroup._place() == tmp_path / "nowhere/unit" / idle_cgroup.NAME
    assert not idle_cgroup.put(1)

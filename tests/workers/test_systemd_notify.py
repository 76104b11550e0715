"""The supervisor's notifications to a service manager."""

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.workers.supervisor import systemd_notify
from tests.waiting import until
from tests.workers.host import House, want


@pytest.fixture
def heard(house: House, tmp_path: Path) -> Iterator[list[bytes]]:
    """All notifications so far."""
    told: list[bytes] = []
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    house.environment[systemd_notify.SOCKET] = str(tmp_path / "notify")

    def listen() -> None:
        while said := manager.recv(4096):
            told.append(said)

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    yield told
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.sendto(b"", str(tmp_path / "notify"))
    listening.join()
    manager.close()


def test_supervisor_notifies_ready_status_and_watchdog(house: House, heard: list[bytes]) -> None:
    want(1)
    supervisor = house.supervise()
    until(lambda: b"WATCHDOG=1\nSTATUS=1 process running" in heard, what="its status, and a sign of life")
    assert heard[0] == b"READY=1"
    house.running(1)
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(60) == 0
    until(lambda: any(b"STOPPING=1\nSTATUS=stopping" in said for said in heard), what="that it stops")


def test_without_a_service_manager_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(systemd_notify.SOCKET, raising=False)
    monkeypatch.setattr(socket, "socket", lambda *_: pytest.fail("it tells somebody"))
    systemd_notify.notify("READY=1")


def test_a_manager_that_is_gone_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor is one that restarts: it gets later notifications."""
    monkeypatch.setenv(systemd_notify.SOCKET, str(tmp_path / "notify"))
    systemd_notify.notify("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        systemd_notify.notify("WATCHDOG=1", "STATUS=here")
        assert manager.recv(4096) == b"WATCHDOG=1\nSTATUS=here"

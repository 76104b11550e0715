"""Embedded servers that ended are restarted; a failed restart stops nothing else."""

from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.workers.supervisor.embedded_servers import EmbeddedServers
from tests.waiting import until


class Ended:
    """A server that is down; its disk is full at first."""

    port = 0
    running = False
    is_full = True

    def start(self) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.running = True

    def stop(self) -> None: ...


@pytest.fixture
def servers(tmp_path: Path, settings: Any) -> EmbeddedServers:
    settings.PGQUEUE = {**settings.PGQUEUE, "OURS": {"console": False, "broker": False}, "VAR": tmp_path}
    return EmbeddedServers(tmp_path)


def test_a_full_disk_is_waited_for(servers: EmbeddedServers) -> None:
    servers._all["Valkey"] = server = Ended()
    assert servers.look() == "Valkey ended and cannot be started yet. [Errno 28] No space left on device"
    assert servers.look() is None, "not at every look"
    server.is_full = False
    assert "Valkey ended and was started again" in until(servers.look, what="it runs again")

"""The broker of compose.yaml, started by its own command, refuses clients without the password."""

import os
import subprocess
from pathlib import Path

import pytest
import redis

from pgqueue_admin.embedded import binaries, ports
from tests.architecture.test_deploy import COMPOSE
from tests.waiting import until


def test_broker_refuses_clients_without_the_password(tmp_path: Path) -> None:
    port, server = ports.free(), tmp_path / "valkey-server"
    server.write_text(f'#!/bin/sh\nexec {binaries.valkey()} "$@" --port {port} --bind 127.0.0.1\n')
    server.chmod(0o755)
    command = [word.replace("$$", "$") for word in COMPOSE["services"]["valkey"]["command"]]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "REDISCLI_AUTH": "s3cret"}
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        until(lambda: ports.answers(port), what="Valkey answers")
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).ping()
        assert redis.Redis(port=port, password="s3cret").ping()
        assert "s3cret" not in Path(f"/proc/{process.pid}/cmdline").read_text()
    finally:
        process.terminate()
        process.wait(30)


def test_programs_are_told_it() -> None:
    url = COMPOSE["x-environment"]["CELERY_BROKER_URL"]
    assert url == "redis://:${VALKEY_PASSWORD:?set it in .env}@valkey:6379/0"

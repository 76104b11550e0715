"""The embedded broker on a real process."""

import os
import signal
from pathlib import Path

import pytest
import redis

from pgqueue_admin.embedded.valkey import Valkey
from tests.waiting import until


def test_it_answers_with_its_password_only_and_heals_on_its_port(tmp_path: Path) -> None:
    broker = Valkey(tmp_path)
    broker.start()
    try:
        assert redis.Redis.from_url(broker.url).ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=broker.port).ping()
        url = broker.url
        assert broker.pid
        os.kill(broker.pid, signal.SIGKILL)
        until(lambda: not broker.running, what="the death is noticed")
        broker.start()
        assert broker.url == url
        assert redis.Redis.from_url(url).ping()
    finally:
        broker.stop()

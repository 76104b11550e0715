"""The one LISTEN session of a web process detects a lost connection."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg
import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.live import listener
from tests.hostile.proxy import Proxy
from tests.waiting import PATIENCE

CHANNEL = "test_wake"


async def soon(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def heard(wakes: AsyncIterator[str]) -> str:
    async with asyncio.timeout(PATIENCE):
        return await anext(wakes)


def notify(dsn: str) -> None:
    with postgresql().connect(dsn, for_handlers=True) as connection:
        connection.notify(CHANNEL)


async def test_its_server_notices_when_nobody_listens_any_more(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    connect = psycopg.AsyncConnection.connect

    async def remembered(*given: Any, **more: Any) -> Any:
        opened.append(await connect(*given, **more))
        return opened[-1]

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", remembered)
    wakes = listener.wakes(database, [CHANNEL])
    assert await heard(wakes) == ""
    shown = {}
    for name in ("tcp_keepalives_idle", "default_transaction_isolation"):
        cursor = await opened[0].execute(f"show {name}")
        shown[name] = (await cursor.fetchone())[0]
    await wakes.aclose()
    assert shown == {"tcp_keepalives_idle": "10", "default_transaction_isolation": "read committed"}


def test_ten_seconds_at_most() -> None:
    assert listener.ALIVE_SECONDS + listener.ANSWER_SECONDS < 10


async def test_a_wire_that_swallows_everything_is_left(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "ALIVE_SECONDS", 0.2)
    monkeypatch.setattr(listener, "ANSWER_SECONDS", PATIENCE)  # even a slow answer counts
    proxy = Proxy(database)
    wakes = listener.wakes(proxy.dsn, [CHANNEL])
    assert await heard(wakes) == ""
    notify(database)
    assert await heard(wakes) == CHANNEL
    with proxy.swallowing():
        monkeypatch.setattr(listener, "ANSWER_SECONDS", 0.2)
        waiting = asyncio.ensure_future(anext(wakes))
        await soon(lambda: proxy.accepted > 1)
    monkeypatch.setattr(listener, "ANSWER_SECONDS", PATIENCE)
    async with asyncio.timeout(PATIENCE):  # the swallowed attempt has its own limit of five seconds
        assert await waiting == "", "listening again, and whoever follows looks at everything"
    notify(database)
    assert await heard(wakes) == CHANNEL
    await wakes.aclose()
    proxy.cut()


async def test_the_kernel_asks_as_well(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, connect = [], psycopg.AsyncConnection.connect

    async def kept(*given: Any, **options: Any) -> Any:
        opened.append(await connect(*given, **options))
        return opened[-1]

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", kept)
    wakes = listener.wakes(database, [CHANNEL])
    assert await heard(wakes) == ""
    with socket.socket(fileno=os.dup(opened[0].fileno())) as wire:
        assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
        assert wire.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 15_000
    await wakes.aclose()

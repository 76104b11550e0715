"""The process's one LISTEN on the console's database: yields channel names, and "" after each (re)connect."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

from pgqueue_admin.dialects.postgresql import connect_options, session_settings

log = logging.getLogger(__name__)
ALIVE_SECONDS = 5.0  # after this much silence the server is probed
ANSWER_SECONDS = 4.0  # an answer that takes longer counts as lost


async def wakes(dsn: str, channels: Iterable[str]) -> AsyncGenerator[str, None]:
    """Never ends. After each connect, "" means: render everything, since notifications may have been missed."""
    pause = 0.2
    while True:
        try:
            async for channel in _listen(dsn, channels):
                pause = 0.2
                yield channel
        except psycopg.Error as error:
            log.warning("the console's database does not answer, listening again in %.1f s: %s", pause, error)
        await asyncio.sleep(pause)
        pause = min(pause * 2, 5.0)


async def _listen(dsn: str, channels: Iterable[str]) -> AsyncIterator[str]:
    async with await opened(dsn) as session:
        for channel in channels:
            await _ask(session, sql.SQL("listen {}").format(sql.Identifier(channel)))
        yield ""
        while True:
            async for notification in session.notifies(timeout=ALIVE_SECONDS):
                yield notification.channel
            await _ask(session, sql.SQL("select 1"))


async def opened(dsn: str) -> psycopg.AsyncConnection[Any]:
    """Raises OperationalError."""
    session = await psycopg.AsyncConnection.connect(
        dsn,
        autocommit=True,
        connect_timeout=5,
        **connect_options.on_the_wire(dsn),
        **connect_options.options(dsn, "pgqueue-admin live", read_only=False, statement_timeout=None),
    )
    try:
        await _ask(session, session_settings.as_started(session.pgconn))
    except BaseException:
        await session.close()
        raise
    return session


async def _ask(session: psycopg.AsyncConnection[Any], query: sql.SQL | sql.Composed) -> None:
    """Raises OperationalError, also if the network drops everything: the driver alone would wait for an answer."""
    asked = asyncio.ensure_future(session.execute(query))
    try:
        answered, _ = await asyncio.wait([asked], timeout=ANSWER_SECONDS)
    except asyncio.CancelledError:
        _cut(session)
        with suppress(psycopg.Error):
            await asked  # else it would go on with the number of a socket that is another's by then
        raise
    if not answered:
        _cut(session)
    await asked


def _cut(session: psycopg.AsyncConnection[Any]) -> None:
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(session.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)

"""The process's one LISTEN on the console's database: yields channel names, and "" after each (re)connect."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable

import psycopg
from psycopg import sql

log = logging.getLogger(__name__)
ALIVE_SECONDS = 20.0


async def wakes(dsn: str, channels: Iterable[str]) -> AsyncIterator[str]:
    """Never ends. What was announced while nobody listened is made up for by the "" that says: look at everything."""
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
    session = await psycopg.AsyncConnection.connect(
        dsn, autocommit=True, connect_timeout=5, application_name="pgqueue-admin live"
    )
    async with session:
        for channel in channels:
            await session.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        yield ""
        while True:
            async for notification in session.notifies(timeout=ALIVE_SECONDS):
                yield notification.channel
            await session.execute("select 1")  # notices a connection that died without a word

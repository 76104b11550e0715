"""The worker of oliverlambson/pgmq, rewritten from its description (sheet A4): original_worker.py DSN [LOCK_SECONDS].

One asyncpg connection listens, claims and ends messages. Each NOTIFY is handled in its own task. One that arrives
while the connection is busy raises an error in its task and is left to the original's cron. Prints a line per act.
"""

import asyncio
import json
import re
import signal
import sys
from datetime import timedelta
from typing import Any, NamedTuple

import asyncpg

from tests.lease import original


class Ending(NamedTuple):
    result: str
    details: str


def numbered(query: str) -> str:
    """The statement with asyncpg's numbered placeholders."""
    places = iter(range(1, 10))
    return re.sub("%s", lambda _: f"${next(places)}", query)


TAKE, LOCK, DELETE, ARCHIVE = map(numbered, (original.TAKE, original.LOCK, original.DELETE, original.ARCHIVE))


async def retrieve(connection: Any, message: int, lock: float) -> Any | None:
    """Lock the row and return it; None if another worker has it or it is gone."""
    try:
        async with connection.transaction():
            if await connection.fetchval(TAKE, message) is None:
                return None
            return await connection.fetchrow(LOCK, timedelta(seconds=lock), message)
    except asyncpg.LockNotAvailableError:
        return None


async def processed(message: Any) -> Ending:
    if not isinstance(message, list):
        return Ending("rejected", "invalid format")
    if not message:
        return Ending("rejected", "nothing in list")
    instruction = message[0]
    if instruction == "reject":
        return Ending("rejected", "explicit reject")
    if instruction == "fail":
        return Ending("failed", "explicit fail")
    if instruction == "raise":
        raise ValueError("told to")
    if instruction == "timeout":
        await asyncio.sleep(3600)
    return Ending("success", "fake work")


async def ending(message: Any, lock: float) -> Ending:
    try:
        return await asyncio.wait_for(processed(message), lock)
    except TimeoutError:
        return Ending("failed", "timed out")
    except Exception as error:
        return Ending("failed", f"unhandled exception: {error}")


async def handle(connection: Any, message: int, lock: float) -> None:
    row = await retrieve(connection, message, lock)
    if row is None:
        print(f"not mine {message}", flush=True)
        return
    end = await ending(json.loads(row["message"]), lock)
    async with connection.transaction():
        await connection.execute(DELETE, row["id"])
        await connection.fetchrow(ARCHIVE, row["created_at"], row["message"], end.result, "worker", end.details)
    print(f"{end.result} {message}", flush=True)


async def main(dsn: str, lock: str = "1") -> None:
    connection = await asyncpg.connect(dsn, server_settings={"timezone": "UTC"})
    tasks: set[asyncio.Task[None]] = set()

    def done(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if error := task.exception():
            print(f"left {type(error).__name__}", flush=True)

    def told(_: Any, __: int, ___: str, payload: str) -> None:
        task = asyncio.ensure_future(handle(connection, int(payload), float(lock)))
        tasks.add(task)
        task.add_done_callback(done)

    await connection.add_listener("new_message", told)
    print("listens", flush=True)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await over.wait()
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

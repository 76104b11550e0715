"""The same batch beside little history and beside much: two databases, a driver each, by turns."""

import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench import children, history_archive, history_grown
from bench.children import Child, side
from bench.table import Row, row
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL

HISTORY_ROWS = int(os.environ.get("HISTORY_ROWS", 10_000_000))
TURN = 600.0  # seconds that one may take
AFTER = 6 * 24 * 180_000  # messages: what is read here ended at a time of its own, and at the same time of the day


class World(NamedTuple):
    connection: Connection
    driver: Child


def flat(server: PostgreSQL, folder: Path, rows: int, rounds: int) -> Row:
    with ExitStack() as stack:
        little, much = (world(stack, server, folder, name) for name in ("little", "much"))
        for each in (little, much):
            history_archive.lay_out(each.connection, 1, history_grown.BATCH)
            children.ask(each.driver)
        for each in (little, much):
            children.answer(each.driver, TURN)
        history_grown.grow(much.connection, folder / "much/history", HISTORY_ROWS)
        found = [share(little, much, AFTER + number * rows, rows) for number in range(rounds + 1)]
    name = f"{rows:,} rows beside {HISTORY_ROWS:,} of history, against {history_grown.BATCH:,}"
    return row(name, 100 * statistics.median(found[1:]), "%", floor=None, target=110)


def share(little: World, much: World, first: int, rows: int) -> float:
    """Much against little; who begins changes."""
    order = (little, much) if first // rows % 2 else (much, little)
    taken = {each: turn(each, first, rows) for each in order}
    return taken[much] / taken[little]


def turn(world: World, first: int, rows: int) -> float:
    """The seconds for so many messages more."""
    history_archive.lay_out(world.connection, first, rows)
    children.ask(world.driver)
    return children.answer(world.driver, TURN)[0]


def world(stack: ExitStack, server: PostgreSQL, folder: Path, name: str) -> World:
    with postgresql().connect(server.dsn(), for_handlers=True) as admin:
        admin.run(f"create database {name}")
    (folder / name).mkdir()
    environ = {"DATABASE_URL": server.dsn(name), "PGQUEUE_STATE_DIR": str(folder / name)}
    for act in ("migrate", "engine_schema"):
        command = [sys.executable, "manage.py", act, "-v0"]
        subprocess.run(command, env={**os.environ, **environ}, check=True, timeout=TURN, stderr=subprocess.DEVNULL)
    return World(
        stack.enter_context(postgresql().connect(server.dsn(name))), stack.enter_context(side("turns", **environ))
    )

"""The whole product with history on: charts fill by themselves, a killed driver recovers, nothing is left behind."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from tests.history.pause_points import POINTS, held_at, is_waited_for
from tests.journeys.product import Product
from tests.waiting import until
from tests.workers.process_tree import free_port, none_left, processes

pytestmark = pytest.mark.spark
(WRITTEN,) = (point for point in POINTS if point.name == "written")
DRIVER = "select pid from pgqueue_console.pgqueue_process where role = 'history' and ended_at is null"
MORE = "insert into audit (id, headers, body) select gen_random_uuid(), headers, body from audit limit 3"


def test_history_fills_and_heals(tmp_path: Path) -> None:
    product = Product(tmp_path / "var", free_port(), SPARK_MASTER="local[2,4]", PGQUEUE_CODE_VERSION="2026.11-rc1")
    product.start()
    try:
        dsn = json.loads((product.var / "state.json").read_text())["dsn"]
        with (
            postgresql().connect(dsn, for_handlers=True) as database,
            postgresql().connect(dsn, for_handlers=True) as holder,
        ):
            until(lambda: is_whole(database), 300, "everything audited is in history")
            with held_at(WRITTEN, holder):
                database.run(MORE)
                database.run("update pgqueue_console.pgqueue_historysource set requested_at = now()")
                until(lambda: is_waited_for(database), 300, "its next batch is read and written, and not compared")
                batch = database.value("select id from pgqueue_console.pgqueue_historybatch where state = 'running'")
                killed = database.value(DRIVER)
                os.kill(killed, signal.SIGKILL)
                until(lambda: database.value(DRIVER) not in (None, killed), 60, "the supervisor starts another")
            there = database.value("select max(seq) from demo.audit")
            database.run("update pgqueue_console.pgqueue_historysource set requested_at = now()")
            until(lambda: is_whole(database, there), 300, "a new driver goes on")
            (again,) = database.all(
                "select state, attempt from pgqueue_console.pgqueue_historybatch where id = %(id)s", {"id": batch}
            )
            assert tuple(again) == ("done", 2), "with the very batch, and it counts once"
            begun = (
                "select array_agg(distinct code_version) from pgqueue_console.pgqueue_historybatch where attempt > 0"
            )
            assert database.value(begun) == ["2026.11-rc1"], "each says which code read it, also after a kill"
    finally:
        product.stop()
    none_left(product.var, 2)
    assert not processes(product.var)


def is_whole(database: Any, live: int = 1) -> bool:
    """Whether rollups count what a plain SELECT counts: all of the recorded shop, of the live one what was read.

    ``live``: the row up to which the live shop's ever-growing audit queue must have been read.
    """
    counted: bool = database.value(
        f"""
        with live as (select seq_done from pgqueue_console.pgqueue_historysource where "table" = '"demo"."audit"')
        select (select sum(messages) from pgqueue_console.pgqueue_rollup where grain = 'day' and result = 'success')
             = (select count(*) from audit) + (select count(*) from demo.audit, live where seq <= seq_done)
           and (select seq_done from live) >= {live}
        """
    )
    return counted

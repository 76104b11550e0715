"""The whole product with history on: charts fill by themselves, a killed driver heals, and nothing stays behind."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.product import Product
from tests.waiting import until
from tests.workers.tree import free_port, none_left, processes

pytestmark = pytest.mark.spark


def test_history_fills_and_heals(tmp_path: Path) -> None:
    product = Product(tmp_path / "var", free_port(), SPARK_MASTER="local[2,4]")
    product.start()
    try:
        dsn = json.loads((product.var / "state.json").read_text())["dsn"]
        with postgresql().connect(dsn) as database:
            until(lambda: is_whole(database), 300, "everything audited is in history")
            asked = "select pid from pgqueue_process where role = 'pipeline' and ended_at is null"
            os.kill(database.value(asked), signal.SIGKILL)
            database.run(
                "insert into audit (id, headers, body) select gen_random_uuid(), headers, body from audit limit 3"
            )
            database.run("update pgqueue_historysource set wanted_at = now()")
            until(lambda: is_whole(database), 300, "a new driver goes on")
    finally:
        product.stop()
    none_left(product.var, 2)
    assert not processes(product.var)


def is_whole(database: Any) -> bool:
    """Whether the rollups count what a plain SELECT counts."""
    counted: bool = database.value(
        "select (select sum(messages) from pgqueue_rollup where grain = 'day' and result = 'success')"
        " = (select count(*) from audit)"
    )
    return counted

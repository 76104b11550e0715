"""What a new user gets: the files, one command, and charts of the recorded and the live shop within ten minutes."""

import csv
import os
import shutil
import signal
import time
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from tests.history.test_whole_product import is_whole
from tests.journeys.product import ROOT, Product
from tests.waiting import until
from tests.workers.process_tree import free_port, none_left

pytestmark = pytest.mark.fresh
TEN_MINUTES = 600
LEFT_BEHIND = shutil.ignore_patterns(".git", ".venv", "var", "node_modules", "__pycache__", ".*_cache", ".hypothesis")
# Messages of the recorded shop that ended before yesterday; history does not read control messages.
RECORDED = """
with yesterday as (select (now() at time zone 'UTC')::date - 1 as day)
select (
    select count(*) from public.audit, yesterday
    where headers::jsonb ->> 'NServiceBus.ProcessingEnded' < day::text
) + (
    select count(*) from messages.message_archive, yesterday
    where kind <> 'control' and died_at at time zone 'UTC' < day
)
"""


class Made(Product):
    """`make run` in a copy of the project, in which nothing is installed."""

    command = ("make", "run")

    def __init__(self, folder: Path):
        self.root = folder / "copy"
        shutil.copytree(ROOT, self.root, ignore=LEFT_BEHIND)
        super().__init__(self.root / "var", free_port())
        self.output = folder / "make.log"
        for name in ("PGQUEUE_STATE_DIR", "SPARK_MASTER", "DJANGO_SETTINGS_MODULE"):
            del self.environment[name]

    def stop(self, seconds: float = 90) -> int:
        """Send Ctrl-C, which a terminal also sends to make."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(seconds)


def test_make_run_shows_history_within_ten_minutes(tmp_path: Path) -> None:
    product = Made(tmp_path)
    began = time.monotonic()
    try:
        product.start(TEN_MINUTES)
        with postgresql().connect(product.dsn, for_handlers=True) as database:
            left = TEN_MINUTES - (time.monotonic() - began)
            until(lambda: is_read(database), left, "all that was recorded, and some of the live shop, is in history")
            client = signed_in(product)
            assert client.get("/trends/").status_code == 200
            assert finished(client) == database.value(RECORDED) > 10_000
            client.close()
    finally:
        product.stop()
    none_left(product.root, 5)


def is_read(database: Any) -> bool:
    known = """select exists (select from pgqueue_console.pgqueue_historysource
        where "table" = '"demo"."audit"' and seq_done > 0)"""
    return bool(database.value(known) and is_whole(database))


def signed_in(product: Product) -> httpx.Client:
    client = httpx.Client(base_url=product.url, follow_redirects=True)
    page = client.get("/")
    name, password = product.login
    token = next(each.value for each in client.cookies.jar if each.name.startswith("csrftoken_"))
    answer = client.post(page.url, data={"username": name, "password": password, "csrfmiddlewaretoken": token})
    assert answer.url.path == "/", answer.text
    return client


def finished(client: httpx.Client) -> int:
    """The sum of Trends' daily counts before yesterday."""
    rows = csv.DictReader(StringIO(client.get("/trends/", params={"w": "2y", "format": "share"}).text))
    yesterday = str(datetime.now(UTC).date() - timedelta(days=1))
    return sum(int(row["finished"]) for row in rows if row["at"] < yesterday)

"""The budgets of CONSOLE section 10, and vendored files unchanged from their origin."""

import gzip
import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pgqueue_admin.models import database_clock
from tests.console.sampled import many_queues, signed_in

ROOT = Path(__file__).resolve().parent.parent.parent
STATIC = ROOT / "static" / "pgqueue_admin"


class Elements(HTMLParser):
    def __init__(self, page: str):
        super().__init__()
        self.count = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.count += 1


def weight(data: bytes) -> int:
    return len(gzip.compress(data, 6))


@pytest.mark.parametrize("path", ["/", "/queues/?sort=name"])
def test_two_hundred_queues_stay_light(console_database: str, path: str) -> None:
    many_queues(200)
    page = signed_in().get(path).content
    assert weight(page) <= 15_000
    assert Elements(page.decode()).count <= 3_000


@pytest.mark.parametrize(
    ("path", "most"), [("/", 15), ("/queues/", 8), (f"/queues/public/{'Very' * 8}.Long007/", 11), ("/healthz", 0)]
)
def test_two_hundred_queues_need_no_more_statements_than_two(console_database: str, path: str, most: int) -> None:
    """Includes session and user; not the clock query, which one page in ten seconds makes."""
    many_queues(200)
    client = signed_in(superuser=True)
    client.get("/healthz")
    client.get("/me/keys/")  # the first page records the sign-in
    database_clock.now()
    with CaptureQueriesContext(connection) as asked:
        assert client.get(path).status_code == 200
    assert len([each for each in asked if "clock_timestamp()" not in each["sql"]]) <= most


def test_styles_and_scripts_stay_light() -> None:
    assert weight((STATIC / "console.css").read_bytes()) <= 12_000
    assert sum(weight((STATIC / name).read_bytes()) for name in ("console.js", "chart.js")) <= 9_000
    assert weight((STATIC / "console.js").read_bytes()) <= 8_000
    assert weight((STATIC / "range_select.js").read_bytes()) <= 1_500


def test_vendored_files_are_as_npm_has_them() -> None:
    for line in (STATIC / "vendor" / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest, name


def test_vendored_versions_are_exact() -> None:
    versions = json.loads((ROOT / "package.json").read_text())["dependencies"]
    assert versions["htmx.org"].startswith("2.0.")
    assert all(version[0].isdecimal() for version in versions.values())

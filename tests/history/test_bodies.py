"""The bodies that history keeps, by setting, from the table to the page."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from django.conf import settings

from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.sources.size_limits import BODY_KEPT_MOST
from pgqueue_admin.models import DataFile, HistoryBatch
from pgqueue_admin.transport.wire import headers as h
from tests.history.tables import audit_queue

pytestmark = pytest.mark.spark
HEADERS = h.dump({h.PROCESSING_ENDED: "2026-11-14 10:00:00:000000 Z", h.PROCESSING_ENDPOINT: "Sales"})
SHORT, LONG = b"\x00short", bytes(range(256)) * 20
KEPT: dict[str, Callable[[bytes], bytes | None]] = {
    "keep": lambda body: body,
    "truncate": lambda body: body[:4096],
    "hash": lambda body: hashlib.sha256(body).digest(),
    "drop": lambda body: None,
}


def test_each_setting(
    database: Any, driver: Callable[..., BatchLoop], history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting applies to rows read from then on; stored ones stay unchanged."""
    audit_queue(database)
    wanted = []
    for setting, kept in KEPT.items():
        for body in (SHORT, LONG, b"", None):
            put = "insert into audit (id, headers, body) values (gen_random_uuid(), %s, %s) returning seq"
            seq = database.value(put, [HEADERS, body])
            wanted.append((seq, None, None) if body is None else (seq, kept(body), len(body)))
        monkeypatch.setitem(settings.PGQUEUE, "HISTORY_BODIES", setting)
        assert driver().run_once() == 1
    assert whole(history) == wanted


def test_oversized_body_is_truncated_or_rejected_by_setting(
    database: Any, driver: Callable[..., BatchLoop], history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_queue(database)
    for setting, said in (("truncate", {}), ("keep", {"its body is larger than 4 MB": 1})):
        monkeypatch.setitem(settings.PGQUEUE, "HISTORY_BODIES", setting)
        database.run(
            "insert into audit (id, headers, body) values (gen_random_uuid(), %s, convert_to(repeat('x', %s), 'utf8'))",
            [HEADERS, BODY_KEPT_MOST + 1],
        )
        assert driver().run_once() == 1
        assert HistoryBatch.objects.latest("pk").rejected == said
    assert [(body, size) for _, body, size in whole(history)] == [(b"x" * 4096, BODY_KEPT_MOST + 1)]


def whole(history: Path) -> list[tuple[int, bytes | None, int | None]]:
    paths = [str(history / file.path) for file in DataFile.objects.filter(dataset="history")]
    found = pyarrow.dataset.dataset(paths).to_table(["seq", "body", "body_bytes"]).to_pylist()
    return sorted((row["seq"], row["body"], row["body_bytes"]) for row in found)

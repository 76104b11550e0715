"""The pressure benchmark runs each phase for both kinds of queue and loses no message of either."""

from collections.abc import Iterator

import pytest

from bench import pressure
from bench.folder import temporary
from bench.pressure import TABLES, Bench
from pgqueue_admin.embedded.postgresql import PostgreSQL


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(pressure, "SECONDS", 0.3)
    monkeypatch.setattr(pressure, "READERS", [1, 3])
    monkeypatch.setattr(pressure, "MESSAGES", 50)
    with temporary() as folder:
        server = PostgreSQL(folder / "postgresql")
        server.start()
        try:
            yield Bench(server)
        finally:
            server.stop()


@pytest.mark.parametrize("kind", TABLES)
def test_each_phase_is_measured(bench: Bench, kind: str) -> None:
    rows = {each.name: each for each in bench.parts()[kind]()}
    assert len(rows) == 1 + 2 * 5
    for readers in (1, 3):
        for stress in ("a held transaction with an xid", "4 overlapping repeatable-read scanners"):
            assert rows[f"{kind}, {readers} readers: {stress}"].target == 0.8
            assert rows[f"{kind}, {readers}, {stress}: unrelated p95"].target == 10
        assert rows[f"{kind}, {readers} readers: recovery"].value > 0
    assert bench.connection.value(f"select count(*) from {TABLES[kind]}") >= 50 - 3, "what is taken is put back"
    holders = "select count(*) from pg_stat_activity where state like 'idle in transaction%'"
    assert bench.connection.value(holders) == 0

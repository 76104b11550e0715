"""An error that keeps history from being read is shown from its first occurrence until it is over."""

import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.history import ledger
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.runtime.installation import UNDER_WAY, Installation
from pgqueue_admin.osproc.cpu_affinity import CpuShare
from pgqueue_admin.workers.processes.history_process import HistoryProcess
from tests.history.tables import audit, put
from tests.workers.unexpected_exit import Unasked

FULL = "RuntimeError: No space left on device"
Turn = Callable[..., int]


@pytest.fixture
def keeping(console_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[HistoryProcess]:
    monkeypatch.setattr(CpuShare, "_leave", lambda *_: None)  # the tests' process keeps all of them
    keeping = HistoryProcess(Unasked())  # type: ignore[arg-type]
    yield keeping
    keeping.close()


@pytest.fixture
def turns(keeping: HistoryProcess, monkeypatch: pytest.MonkeyPatch) -> Callable[[Turn], None]:
    """``turns(does)``: the driver's next turn does that."""

    def turns(does: Turn) -> None:
        monkeypatch.setattr(BatchLoop, "run_once", does)
        keeping._due_at = 0
        keeping.run_once()

    return turns


def fails(*_: Any) -> int:
    raise RuntimeError("No space left on device")


def is_away(*_: Any) -> int:
    raise DatabaseError("It does not answer.")


def finds_nothing(*_: Any) -> int:
    return 0


def trouble(keeping: HistoryProcess) -> tuple[str, datetime | None]:
    return keeping._trouble, keeping._since


@pytest.mark.parametrize(("does", "why"), [(fails, FULL), (is_away, str(DatabaseError("It does not answer.")))])
def test_lasting_error_keeps_its_start_and_its_end_is_logged_once(
    does: Turn, why: str, keeping: HistoryProcess, turns: Callable[[Turn], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pgqueue_admin.workers.processes.history_process")
    turns(does)
    first = trouble(keeping)
    assert first[0] == why
    turns(does)
    assert trouble(keeping) == first
    turns(finds_nothing)
    assert trouble(keeping) == ("", None)
    assert caplog.messages == [f"History is not read: {why}", "History is read again."]


def test_error_stays_while_its_batch_pauses(
    database: Any, keeping: HistoryProcess, turns: Callable[[Turn], None]
) -> None:
    source = audit(database)
    put(database)
    batch = planning.plan_batch(database, source)
    assert batch is not None
    token = ledger.begin(batch, "test")
    ledger.failed(batch, token, FULL)
    turns(fails)
    first = trouble(keeping)
    turns(finds_nothing)
    assert trouble(keeping) == first
    ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
    turns(finds_nothing)
    assert trouble(keeping) == ("", None)


def test_error_ends_with_the_first_batch_read(keeping: HistoryProcess, turns: Callable[[Turn], None]) -> None:
    """A backlog may take an hour after that."""

    def reads_on(driver: BatchLoop, *_: Any) -> int:
        driver._has_read()
        assert trouble(keeping) == ("", None)
        return 1

    turns(fails)
    turns(reads_on)
    assert trouble(keeping) == ("", None)


def test_installing_message_ends_once_history_reads(
    keeping: HistoryProcess, turns: Callable[[Turn], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads(*_: Any) -> int:
        assert trouble(keeping) == ("", None)
        return 1

    monkeypatch.setattr(Installation, "wanted", lambda _: UNDER_WAY)
    turns(finds_nothing)
    assert trouble(keeping)[0] == UNDER_WAY
    monkeypatch.setattr(Installation, "wanted", lambda _: "")
    turns(reads)
    assert trouble(keeping) == ("", None)

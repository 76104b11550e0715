"""The promotion of a standby, and the reason that the ledger gives."""

import re
from pathlib import Path
from typing import Any

from pgqueue_admin.history.plan import planning, xid_continuity
from pgqueue_admin.models import HistorySource
from tests.waiting import until

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/resume-history.md"


def rests(database: Any, source: HistorySource, why: str) -> None:
    """The source is not planned, and the ledger gives the reason."""
    source.refresh_from_db()
    assert planning.plan_batch(database, source) is None
    source.refresh_from_db()
    assert why in source.blocked_reason
    assert "docs/how-to/resume-history.md" in source.blocked_reason


def lags_from_now_on(standby: Any) -> None:
    standby.run("alter system set primary_conninfo = ''")
    standby.run("select pg_reload_conf()")
    until(lambda: standby.value("select count(*) from pg_stat_wal_receiver") == 0, what="it hears of nothing more")


def has_all_of(database: Any, standby: Any) -> None:
    """The standby has replayed the log written so far."""
    written = xid_continuity.written(database)
    behind = "select pg_last_wal_replay_lsn() - '0/0'::pg_lsn >= %(written)s"
    until(lambda: standby.value(behind, {"written": written}), what="it has all")


def may_see_timelines(database: Any) -> None:
    """Grant it as a superuser would, with the statements of docs/how-to/resume-history.md."""
    block = re.search(r"```sql\n([^`]*create function messages.timeline_history.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    for statement in re.split(r";(?: --.*)?\n", block[1])[:-1]:
        database.run(statement.replace("to pgqueue_console", "to current_user"))

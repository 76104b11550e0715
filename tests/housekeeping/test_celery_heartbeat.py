"""What Celery's worker says of its tasks."""

from datetime import UTC, datetime

from pgqueue_admin.housekeeping.celery_heartbeat import RunningTasks


def test_an_error_is_told_with_its_time() -> None:
    tasks, before = RunningTasks(), datetime.now(UTC)
    assert tasks.row(2)["last_error_at"] is None
    tasks.broke(exception=ValueError("no"))
    row = tasks.row(2)
    assert row["last_error"] == "a task: ValueError: no"
    assert before <= row["last_error_at"] <= datetime.now(UTC)

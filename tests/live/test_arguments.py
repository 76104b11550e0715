"""What a stream follows is found on the event loop, which waits for no database: one that is asked there breaks it."""

import pytest

from pgqueue_admin.console.live_topics import register_all
from pgqueue_admin.live import topics
from pgqueue_admin.models import database_clock

SAID = ("", "1764244800", "12", "3,8,12", "UTC", "-depth", "public.Sales", "x" * 300)


async def test_no_argument_asks_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    register_all()
    for name in topics._topics:
        for said in SAID:
            monkeypatch.setattr(database_clock.now.__self__, "_ask_at", 0.0)  # type: ignore[attr-defined]
            topics.find(f"{name}:{said}")

"""The results of messages retried together: a retry whose messages die again at once is no success."""

import re
from datetime import timedelta

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console.operations import live_progress
from pgqueue_admin.models import Operation, database_clock
from pgqueue_admin.services.operations import runner, single
from tests.archived_messages import succeed
from tests.console.operating import choose, start
from tests.console.pages import shown
from tests.console.recorded import Recorded


def retried(recorded: Recorded, cards: list[int]) -> str:
    """Retry all messages in one operation; return its address."""
    address = choose(recorded.operator, "retry", cards)["Location"]
    start(recorded.operator, address)
    runner.run(Operation.objects.get().pk)
    return str(address)


def die_again(recorded: Recorded, cards: list[int]) -> None:
    died = [message for card in cards if (message := store.get(recorded.connection, card))]
    store.died_again(recorded.connection, [DeadMessage(queue=each.queue, message_id=each.message_id) for each in died])


def figures(html: str) -> dict[str, str]:
    html = re.sub(r"<svg.*?</svg>", "", html, flags=re.S)
    return dict(re.findall(r'<dt>\s*([^<]+?)\s*</dt>\s*<dd class="v"><span[^>]*>([^<]*)</span>', html))


def test_retried_messages_dead_again_are_no_success(recorded: Recorded, cards: list[int]) -> None:
    address = retried(recorded, cards)
    html = shown(recorded.operator, address)
    assert "5 retried." in html
    assert figures(html)["Not known yet"] == "5"
    assert 'class="tag good"' not in html

    assert succeed(recorded.connection, cards[0])
    die_again(recorded, cards[1:4])
    html = shown(recorded.operator, address)
    assert "1 succeeded, 3 dead again, 1 retried." in html
    assert "ended, some died again" in html
    known = figures(html)
    assert (known["Succeeded"], known["Dead again"], known["Not known yet"]) == ("1", "3", "1")
    for part in ('class="ok" x="0" width="1"', 'class="deadf" x="1" width="3"', 'class="k-flight" x="4" width="1"'):
        assert part in html
    for outcome, count in (("succeeded", 1), ("dead_again", 3), ("retried", 1), ("done", 5)):
        assert f'href="?o={outcome}#outcome"' in html
        assert shown(recorded.operator, f"{address}?o={outcome}").count("into <span") == count


def test_open_page_follows_outcomes_and_announces_the_end(recorded: Recorded, cards: list[int]) -> None:
    retried(recorded, cards)
    number = str(Operation.objects.get().pk)
    assert succeed(recorded.connection, cards[0])
    told = live_progress.live(number)
    assert "1 succeeded, 4 retried." in told[f"op.{number}.progress"]
    assert told["@say"] == f"Operation {number} has ended: 5 retried"
    die_again(recorded, cards[1:])
    told = live_progress.live(number)
    assert "4\n  dead again" in told[f"op.{number}.now"]
    assert told["@say"] == f"Operation {number} has ended: 1 succeeded, 4 dead again"
    Operation.objects.update(ended_at=database_clock.now() - live_progress.FOLLOWED - timedelta(minutes=1))
    assert live_progress.live(number) == {}


def test_messages_retried_by_others_are_counted_as_skipped(recorded: Recorded, cards: list[int]) -> None:
    address = choose(recorded.operator, "retry", cards)["Location"]
    start(recorded.operator, address)
    single.act("retry", cards[0], "tomas", "console")
    runner.run(Operation.objects.earliest("pk").pk)
    die_again(recorded, cards[:1])
    html = shown(recorded.operator, address)
    assert "4 retried, 1 skipped." in html
    assert figures(html)["Dead again"] == "0"

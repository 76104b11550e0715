"""Conversations are built from whatever senders wrote: nothing is lost, and no cycle loops forever."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.formatting.conversations import clocks, conversation, flow, headline, sequence, steps
from pgqueue_admin.formatting.conversations.sighting import (
    DEAD,
    OVER,
    UNKNOWN,
    WAITING,
    Sighting,
    SightingAct,
    SightingSource,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
IDS = [*"abcdef", "", "\0", "<script>", "\u202e"]
_text = st.sampled_from(IDS)
_time = st.one_of(
    st.none(),
    st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)]),
    st.integers(-100, 100).map(lambda ms: NOW + timedelta(milliseconds=ms)),
)
_act = st.builds(
    SightingAct, _time, _text, st.sampled_from(["retried", "discarded", "succeeded", "died again", "{who}{0}"])
)
_sighting = st.builds(
    Sighting,
    st.sampled_from(list(SightingSource)),
    _text,
    _text,
    st.sampled_from([*DEAD, *WAITING, *OVER, *UNKNOWN, "something else"]),
    type=_text, is_event=st.booleans(), at=_time, sender=_text, sender_host=_text, host=_text, related_to=_text,
    edit_of=_text, sent_at=_time, started_at=_time, ended_at=_time, failed_at=_time,
    attempts=st.one_of(st.none(), st.integers(0, 9)), acts=st.lists(_act, max_size=3).map(tuple),
)  # fmt: skip


def seen(message_id: str, place: str = "Sales", state: str = "handled", **more: Any) -> Sighting:
    return Sighting(SightingSource.AUDIT, message_id, place, state, **more)


def at(milliseconds: int) -> datetime:
    return NOW + timedelta(milliseconds=milliseconds)


@given(st.lists(_sighting, max_size=30), st.sets(_text))
def test_every_sighting_appears_in_the_conversation_once(found: list[Sighting], focus: set[str]) -> None:
    known = conversation.build(found, focus)
    kept = [each for copy in known.copies for each in copy.sightings if each.source is not SightingSource.CONCLUDED]
    given_ = [each for each in found if each.source is not SightingSource.CONCLUDED]
    assert sorted(map(id, kept)) == sorted(map(id, given_)), "each stands once, and none is lost"
    assert {(each.message_id, each.place) for each in found} <= {(c.message_id, c.place) for c in known.copies}
    places = {id(copy): place for place, copy in enumerate(known.copies)}
    for copy in known.copies:
        assert copy.parent is None or places[id(copy.parent)] < places[id(copy)]
        assert copy.depth == (copy.parent.depth + 1 if copy.parent else 0)
        for span in (copy.wait(NOW), copy.run):
            assert span is None or span >= timedelta()
    assert headline.sentence(known)
    assert headline.tone(known)
    drawn = flow.flow(known.shown, NOW, known.focus)
    groups = {(copy.sender or flow.UNKNOWN, copy.place or flow.UNKNOWN, copy.type) for copy in known.shown}
    assert len(drawn.arrows) + drawn.left_out == len(groups)
    in_order = sequence.sequence(known.shown, NOW)
    assert len(in_order.messages) + in_order.left_out == len(known.shown)
    for step in steps.of(known.of_focus, NOW):
        assert step.title
    assert steps.dead_time(known.copies, NOW) >= timedelta()
    assert all(gap.ahead > timedelta() and gap.said for gap in clocks.gaps(known.copies, NOW))


def test_a_copy_is_a_message_in_a_queue() -> None:
    known = conversation.build([seen("a", "Sales"), seen("a", "Billing"), seen("a", "Sales", "succeeded")])
    assert (known.messages, len(known.copies)) == (1, 2)


def test_each_stands_under_what_caused_it_in_the_order_of_sending() -> None:
    known = conversation.build([
        seen("late", "Billing", sender="Sales", related_to="root", sent_at=at(9)),
        seen("child", "Mails", sender="Billing", related_to="late", sent_at=at(20)),
        seen("root", "Sales", sent_at=at(0)),
        seen("soon", "Billing", sender="Sales", related_to="root", sent_at=at(5)),
    ])  # fmt: skip
    assert [(each.message_id, each.depth) for each in known.copies] == [
        ("root", 0), ("soon", 1), ("late", 1), ("child", 2),
    ]  # fmt: skip


def test_of_an_event_the_copy_that_caused_something_is_the_senders() -> None:
    event: dict[str, Any] = {"is_event": True, "sender": "Sales", "type": "OrderPlaced"}
    known = conversation.build([
        seen("event", "Billing", **event),
        seen("event", "Shipping", **event),
        seen("mail", "Mails", sender="Shipping", related_to="event"),
        seen("points", "Points", sender="Loyalty", related_to="event"),
    ])  # fmt: skip
    causes = {each.message_id: each.parent for each in known.copies}
    assert causes["mail"] is not None
    assert causes["mail"].place == "Shipping"
    loyalty = causes["points"]
    assert loyalty is not None
    assert (loyalty.place, loyalty.type, loyalty.state, loyalty.is_concluded) == (
        "Loyalty", "OrderPlaced", "handled", True,
    )  # fmt: skip


def test_messages_that_name_each_other_are_all_there() -> None:
    names = [str(number) for number in range(2_000)]
    circle = [seen(name, related_to=names[place - 1], sent_at=at(place)) for place, name in enumerate(names)]
    known = conversation.build([*circle, seen("self", related_to="self")])
    assert len(known.copies) == 2_001
    assert [each.message_id for each in known.copies if each.in_circle] == ["0"]
    assert max(each.depth for each in known.copies) == 1_999


def test_of_thousands_the_nearest_are_shown_and_the_others_counted() -> None:
    far = [seen(f"far {number}", type="Far", related_to="root") for number in range(5_000)]
    near = [seen("root"), seen("asked"), seen("caused by it", related_to="asked", type="Near")]
    known = conversation.build([*far, *near], {"asked"})
    assert len(known.shown) == conversation.NEAREST
    assert {"asked", "caused by it"} <= {each.message_id for each in known.shown}
    assert sum(number for _, number in known.folded) + len(known.shown) == len(known.copies) == 5_003


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["dead"], "ChargeCard is dead in Billing"),
        (["failed", "ready"], "ChargeCard is dead in Billing; one message waits in Billing"),
        (["dead", "dead", "delayed", "ready"], "Two messages are dead in Billing; two messages wait in Billing"),
        (["handled", "discarded"], "All that was found is over: 2 message copies"),
        (["handled", "retried"], "Nothing waits or is dead; of 1 message copy the end is not known"),
        ([], "Nothing of this conversation was found"),
    ],
)
def test_how_it_stands_is_one_sentence(states: list[str], said: str) -> None:
    found = [seen(str(number), "Billing", state, type="ChargeCard") for number, state in enumerate(states)]
    assert headline.sentence(conversation.build(found)) == said


def test_present_copy_decides_the_state_before_a_former_one() -> None:
    """Retried and waiting again, or dead again beside a first death that was retried."""
    archived = Sighting(SightingSource.ARCHIVE, "a", "Billing", "retried", failed_at=at(0), at=at(5))
    waits = Sighting(SightingSource.QUEUE, "a", "Billing", "ready", at=NOW)
    (copy,) = conversation.build([archived, waits]).copies
    assert (copy.state, copy.deaths) == ("ready", 1)
    again = Sighting(SightingSource.ARCHIVE, "a", "Billing", "dead", failed_at=at(9), at=at(9))
    (copy,) = conversation.build([archived, again, waits]).copies
    assert (copy.state, copy.deaths, copy.also) == ("dead", 2, ["ready"])


def test_retried_and_handled_message_is_handled_despite_clock_skew() -> None:
    retried = Sighting(SightingSource.ARCHIVE, "a", "Billing", "retried", failed_at=at(0), at=at(5_000))
    behind = Sighting(SightingSource.AUDIT, "a", "Billing", "handled", ended_at=at(2_000))
    assert conversation.build([retried, behind]).copies[0].state == "handled"
    failed = Sighting(SightingSource.HISTORY, "a", "Billing", "failed before", failed_at=at(9_000))
    assert conversation.build([behind, failed]).copies[0].state == "failed before", "what came of it nobody tells"


def test_an_edited_message_stands_under_the_one_it_was_edited_from() -> None:
    dead = Sighting(
        SightingSource.ARCHIVE, "old", "Billing", "retried", sender="Sales", related_to="cause", failed_at=at(0)
    )
    edited = seen("new", "Billing", sender="Sales", related_to="cause", edit_of="old", sent_at=at(9))
    known = conversation.build([edited, dead, seen("cause", "Sales")])
    assert [(each.message_id, each.depth) for each in known.copies] == [("cause", 0), ("old", 1), ("new", 2)]
    assert known.copies[2].was_edited


def test_step_known_from_two_sources_is_listed_once() -> None:
    facts: dict[str, Any] = {"started_at": at(1), "ended_at": at(3), "host": "app-1"}
    audited = Sighting(SightingSource.AUDIT, "a", "Sales", "handled", **facts)
    kept = Sighting(SightingSource.HISTORY, "a", "Sales", "handled", **facts)
    told = steps.of(conversation.build([audited, kept]).copies, NOW)
    assert [(step.title, step.source) for step in told] == [
        ("Picked up by Sales on app-1", SightingSource.AUDIT), ("Handled by Sales", SightingSource.AUDIT),
    ]  # fmt: skip


def test_dead_time_ends_with_what_somebody_did() -> None:
    def dead(state: str, *acts: SightingAct) -> Sighting:
        return Sighting(SightingSource.ARCHIVE, "a", "Billing", state, failed_at=at(-10_000), acts=acts)

    retried = dead(
        "succeeded", SightingAct(at(-4_000), "ana", "retried"), SightingAct(at(-3_000), "Billing", "succeeded")
    )
    assert steps.dead_time(conversation.build([retried]).copies, NOW) == timedelta(seconds=6)
    assert steps.dead_time(conversation.build([dead("dead")]).copies, NOW) == timedelta(seconds=10)


def test_a_clock_that_is_ahead_is_named_and_no_wait_is_made_of_it() -> None:
    early = seen("a", sender_host="app-3", sent_at=at(-20), host="app-1", started_at=at(-100), ended_at=at(-50))
    known = conversation.build([early])
    (gap,) = clocks.gaps(known.copies, NOW)
    assert gap.said.startswith("app-3 is at least 80\u00a0ms ahead of app-1")
    assert known.copies[0].wait(NOW) is None
    assert known.copies[0].run == timedelta(milliseconds=50)


def test_a_time_from_the_future_is_named_beside_the_databases_clock() -> None:
    waits = Sighting(SightingSource.QUEUE, "a", "Sales", "ready", sender_host="app-3", sent_at=at(5_000))
    (gap,) = clocks.gaps(conversation.build([waits]).copies, NOW)
    assert (gap.host, gap.beside, gap.ahead) == ("app-3", clocks.DATABASE, timedelta(seconds=5))


def test_boxes_lie_in_columns_and_none_on_another() -> None:
    known = conversation.build([
        seen("1", "Sales", sender="Web"),
        seen("2", "Billing", sender="Sales", related_to="1", is_event=True),
        seen("3", "Shipping", sender="Sales", related_to="1"),
        seen("4", "Sales", sender="Billing", related_to="2"),
        seen("5", "Sales", sender="Sales", related_to="4"),
        seen("6", "Shipping", "dead", sender="Billing", related_to="2"),
    ])  # fmt: skip
    drawn = flow.flow(known.shown, NOW)
    assert {box.name: box.column for box in drawn.boxes} == {"Web": 0, "Sales": 1, "Billing": 2, "Shipping": 2}
    for one in drawn.boxes:
        assert one.right <= drawn.wide
        assert one.y + one.high <= drawn.high
        for other in drawn.boxes:
            assert (
                one is other
                or one.column != other.column
                or one.y + one.high <= other.y
                or other.y + other.high <= one.y
            )
    assert {each.source.name: each.tone for each in drawn.arrows if each.target.name == "Shipping"} == {
        "Sales": "", "Billing": "bad",
    }  # fmt: skip
    assert drawn.left_out == 0


def test_a_drawing_has_an_end_and_says_what_it_leaves_out() -> None:
    many = [seen(str(number), f"Queue{number}", sender=f"Sender{number}") for number in range(100)]
    drawn = flow.flow(conversation.build(many).copies, NOW)
    assert len(drawn.boxes) == flow.MOST_BOXES
    assert len(drawn.arrows) + drawn.left_out == 100


def test_sequence_follows_the_sending_order_and_names_quiet_spans() -> None:
    known = conversation.build([
        seen("2", "Billing", "dead", sender="Sales", related_to="1", sent_at=at(500)),
        seen("1", "Sales", sender="Web", sent_at=at(0)),
        seen("3", "Sales", sender="Sales", sent_at=at(120_500)),
        seen("4", "Sales", sender="Sales"),
    ])  # fmt: skip
    drawn = sequence.sequence(known.shown, NOW)
    assert [(each.copy.message_id, each.after, each.state) for each in drawn.messages] == [
        ("1", "0\u00a0s", ""), ("2", "500\u00a0ms", "dead"), ("3", "2\u00a0min", ""),
    ]  # fmt: skip
    assert [each.y for each in drawn.messages] == sorted(each.y for each in drawn.messages)
    assert [each.said for each in drawn.quiet] == ["2\u00a0min"]
    assert [lane.name for lane in drawn.lanes] == ["Web", "Sales", "Billing"]
    assert drawn.left_out == 1

"""The state of a conversation, as a sentence."""

from collections.abc import Sequence

from pgqueue_admin.formatting.conversations.conversation import Conversation
from pgqueue_admin.formatting.conversations.copy import MessageCopy
from pgqueue_admin.formatting.names import listed
from pgqueue_admin.formatting.numbers import in_words, pluralize


def tone(known: Conversation) -> tuple[str, str]:
    """A word, and its tag's class."""
    if known.dead:
        return "not over", "crit"
    if known.waiting:
        return "not over", "warn"
    return ("not known to be over", "") if known.open_ended else ("over", "good")


def sentence(known: Conversation) -> str:
    """``ChargeCard is dead in Billing; one message waits in Shipping``."""
    parts = [_dead(known.dead), _waits(known.waiting)]
    if told := "; ".join(filter(None, parts)):
        return told[:1].upper() + told[1:]
    if not known.copies:
        return "Nothing of this conversation was found"
    handled, rest = sum(each.is_over for each in known.copies), len(known.open_ended)
    if not rest:
        return f"All that was found is over: {_copies(handled)}"
    return f"Nothing waits or is dead; of {_copies(rest)} the end is not known"


def _dead(copies: Sequence[MessageCopy]) -> str:
    if len(copies) == 1:
        return f"{copies[0].type or 'one message'} is dead{_in(copies)}"
    return f"{in_words(len(copies))} messages are dead{_in(copies)}" if copies else ""


def _waits(copies: Sequence[MessageCopy]) -> str:
    if not copies:
        return ""
    return f"{in_words(len(copies))} {'message waits' if len(copies) == 1 else 'messages wait'}{_in(copies)}"


def _in(copies: Sequence[MessageCopy]) -> str:
    places = list(dict.fromkeys(each.place for each in copies if each.place))
    return f" in {listed(places)}" if places else ""


def _copies(number: int) -> str:
    return pluralize(number, "message copy", "message copies")

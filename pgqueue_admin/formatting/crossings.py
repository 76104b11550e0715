"""Words for crossings between two databases, on their page and in manage.py crossings."""

from pgqueue_admin.formatting.numbers import pluralize

DECISIONS = {
    "arrived": "It was committed there: its messages are marked as retried, archived, or dead again.",
    "lost": "It was not: its messages are dead as before, or still in the queue there.",
}


def where(takes_in: bool, alias: str) -> str:
    return f"{'taken out of' if takes_in else 'put into'} {alias}"


def asked(number: int, takes_in: bool, alias: str) -> str:
    """The question for the person who decides."""
    return f"{pluralize(number, 'message')} {where(takes_in, alias)}?"


def effect(takes_in: bool, is_typed: bool, arrived: bool, is_move: bool = False) -> str:
    """What the decision does to its messages."""
    if is_move:
        return (
            "They count as moved." if arrived else "They count as never moved. Move them again if it is still wanted."
        )
    if is_typed:
        return "It counts as sent." if arrived else "It counts as never sent. Type it again if it is still wanted."
    if takes_in:
        archived = "Its copies become archived messages."
        binned = "Its copies go into the bin, as they may be all that is left. The rows are expected there."
        return archived if arrived else binned
    if arrived:
        return "Its messages are marked as retried. Nothing is sent."
    return "Its messages are dead as before, and may be retried. If they did arrive, a retry sends them twice."


def effect_of_call_back(arrived: bool) -> str:
    if arrived:
        return "Its messages are dead again, and may be retried. If their endpoint had them, a retry sends them twice."
    return "Its messages stay sent. The rows are expected there."


def decided(number: int, arrived: bool) -> str:
    return f"{pluralize(number, 'message')}: {'they arrived' if arrived else 'they did not arrive'}."

"""The filter box of the lease queue's list: words that a message's text holds, ``is:`` its state, ``age:``."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pgqueue_admin.console import filter_syntax
from pgqueue_admin.console.archive import measures
from pgqueue_admin.monitor.lease_messages import LeaseFilter
from pgqueue_admin.services.content_access import ContentAccess

FIELDS = ("is", "age")
STATES = {"waiting": "waiting", "locked": "locked", "expired": "over", "later": "later"}


@dataclass(frozen=True)
class TypedFilter:
    """``wanted``: None where nothing is filtered. ``faults`` are said under the box, and then nothing is looked for."""

    text: str
    wanted: LeaseFilter | None = None
    faults: Sequence[str] = field(default_factory=list)


def read(text: str, access: ContentAccess) -> TypedFilter:
    """Who may not read what messages say may not ask for it, either: counts would tell it, letter by letter."""
    typed = filter_syntax.read(text, FIELDS)
    faults, states, older, younger = list(typed.faults), [], None, None
    for name, value in typed.fields:
        if name == "is" and value in STATES:
            states.append(STATES[value])
        elif name == "is":
            faults.append(f"There is no is:{value}. Try {', '.join(f'is:{each}' for each in STATES)}")
        else:
            try:
                low, high = measures.age(value)
            except measures.Wrong as wrong:
                faults.append(f"age: {wrong}")
            else:
                older, younger = high if high is not None else older, low if low is not None else younger
    if typed.words and (refusal := access.search_refusal("body", ())):
        faults.append(refusal)
    if faults or not typed.text:
        return TypedFilter(typed.text, None, faults)
    return TypedFilter(typed.text, LeaseFilter(states, typed.words, older, younger))  # type: ignore[arg-type]

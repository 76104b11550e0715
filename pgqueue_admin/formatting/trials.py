"""Words for a trial: each message's outcome, and a sentence for the whole trial."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from pgqueue_admin.formatting import names
from pgqueue_admin.formatting.numbers import pluralize

# outcome: word, tone of its tag, its icon
OUTCOMES = {
    "": ("waits", "line", "clock"),
    "succeeds": ("would succeed", "good", "ok"),
    "raises": ("raises", "crit", "crit"),
    "refused": ("cannot be tried", "", "quiet"),
    "left": ("left its transaction", "warn", "warn"),
    "unknown": ("not known", "", "quiet"),
}
NOT_COVERED = (
    "What a handler does outside its transaction is not undone: mail, files, other services, other databases, "
    "sessions and threads of its own, sends through another client. "
    "Numbers of sequences are used up. One attempt is made, and no retries."
)


class TriedMessage(Protocol):
    @property
    def outcome(self) -> str: ...
    @property
    def raised(self) -> str: ...


def sentence(items: Sequence[TriedMessage]) -> str:
    """``198 of 200 would succeed, 2 still raise KeyError.``"""
    count = Counter(each.outcome for each in items)
    said = [f"{count['succeeds']:,} of {pluralize(len(items), 'message')} would succeed"]
    if count["raises"]:
        raised = _raised(each.raised for each in items if each.outcome == "raises")
        said.append(f"{count['raises']:,} still {'raises' if count['raises'] == 1 else 'raise'} {raised}")
    if count["left"]:
        said.append(f"{count['left']:,} left {'its' if count['left'] == 1 else 'their'} transaction")
    if count["refused"]:
        said.append(f"{count['refused']:,} cannot be tried")
    if count["unknown"]:
        said.append(f"{count['unknown']:,} {'is' if count['unknown'] == 1 else 'are'} not known")
    if count[""]:
        said.append(f"{count['']:,} to go")
    return f"{', '.join(said)}."


def _raised(kinds: Iterable[str]) -> str:
    return names.listed([kind for kind, _ in Counter(each.rpartition(".")[2] for each in kinds).most_common()])

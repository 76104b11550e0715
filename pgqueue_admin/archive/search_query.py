"""The archive's search as links write it: what a figure counts and nothing else (read by archive_query)."""

from collections.abc import Iterator

from pgqueue_admin.archive.messages import ArchiveFilter

LAST = "/last"  # behind the number of an operation: what it was the last to act on
_AS_THEY_ARE = ("state", "result", "kind", "queue", "since", "until")
_FAILURE = "fp"
_WHOLE = {
    "endpoint": "endpoint",
    "message_id": "id",
    "fingerprint": _FAILURE,
    "type_is": "type",
    "exception_is": "error",
}
_BEGINNINGS = {"type_from": "type", "exception_from": "error"}
_LAST_PARTS = {"type": "type", "exception": "error"}  # or whole


def exactly(field: str, name: str) -> str:
    """This name, whatever is in it; of an empty one: what has none."""
    return f"{field}:={_quoted(name)}"


def beginning(field: str, name: str) -> str:
    """Every name that begins so: of one that was cut no more is known."""
    return f"{field}:{_quoted(name)}*"


def died_in(queue: str) -> str:
    """By its address, which has quotes of its own, or by a name."""
    return "queue:" + (queue if '"' in queue else _quoted(queue))


def of_failure(fingerprint: str, state: str = "dead") -> str:
    """What died of one failure; of every state where ``state`` is empty."""
    return f"{f'state:{state} ' if state else ''}{_FAILURE}:{fingerprint}"


def worded(text: str) -> str:
    """What has this in its error's message."""
    return f"message:{_quoted(text)}"


def in_body(text: str) -> str:
    """What has this in its body."""
    return f"body:{_quoted(text)}"


def written(asked: ArchiveFilter) -> str:
    """All of a filter."""
    return " ".join(_terms(asked))


def _terms(asked: ArchiveFilter) -> Iterator[str]:
    nothing = ArchiveFilter(state="").asked()
    given = {name: value for name, value in asked.asked().items() if value != nothing[name]}
    yield from (f"{name}:{given[name]}" for name in _AS_THEY_ARE if name in given)
    yield from (exactly(field, given[name]) for name, field in _WHOLE.items() if name in given)
    yield from (beginning(field, given[name]) for name, field in _BEGINNINGS.items() if name in given)
    yield from (f"{field}:{_quoted(given[name])}" for name, field in _LAST_PARTS.items() if name in given)
    yield from (worded(word) for word in asked.words)
    yield from (f"headers:{_quoted(each)}" for each in asked.headers)
    yield from (in_body(each) for each in asked.bodies)
    if "operation" in given:
        yield f"op:{asked.operation}"
    if "last_operation" in given:
        yield f"op:{asked.last_operation}{LAST}"


def _quoted(name: str) -> str:
    """As it is, where no letter of it means anything to the search; a quotation mark between two quotes is doubled."""
    is_plain = name and name[0] != "=" and name[-1] != "*" and not any(each == '"' or each.isspace() for each in name)
    return name if is_plain else '"' + name.replace('"', '""') + '"'

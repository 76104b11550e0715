"""Spellings of a header in serialized headers, for searches in their text."""

import json

from pgqueue_admin.transport.wire import headers


def as_asked(name: str, value: str) -> dict[str, object]:
    """Parameters of the statements' ``has_conversation``: the name, and the value in every spelling of writers."""
    return {"name": json.dumps(name), "values": spellings(value)}


def spellings(value: str) -> list[str]:
    """The quoted value as endpoints write it: characters beyond ASCII escaped or not, ``/`` escaped or not."""
    ours = headers.pairs({"": value}).partition(":")[2]
    found = [ours, json.dumps(value, ensure_ascii=False), json.dumps(value)]
    return list(dict.fromkeys([*found, *(each.replace("/", "\\/") for each in found[1:])]))

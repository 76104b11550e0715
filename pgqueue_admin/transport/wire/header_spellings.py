"""How a header stands in the text of headers, for a search that reads text and no JSON."""

import json

from pgqueue_admin.transport.wire import headers


def as_asked(name: str, value: str) -> dict[str, object]:
    """Parameters of the statements' ``has_conversation``: the name, and the value in each way that writers spell it."""
    return {"name": json.dumps(name), "values": spellings(value)}


def spellings(value: str) -> list[str]:
    """With its quotation marks: as endpoints write it, beyond ASCII as it is or escaped, ``/`` escaped or not."""
    ours = headers.pairs({"": value}).partition(":")[2]
    found = [ours, json.dumps(value, ensure_ascii=False), json.dumps(value)]
    return list(dict.fromkeys([*found, *(each.replace("/", "\\/") for each in found[1:])]))

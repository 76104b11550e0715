"""Size limits of values: larger ones stay in the database, are counted, and fail no batch."""

HEADERS_MOST = 1_000_000  # bytes
BODY_MOST = 16_000_000
MESSAGE_MOST = 16_384  # characters of an error's message, as headers have it (wire sheet 7.2): the rest is cut off
BODY_KEPT_MOST = 4_000_000  # where bodies are kept whole: several of more have no room in Java


def body_most(bodies: str) -> int:
    """In bytes. ``bodies``: PGQUEUE_HISTORY_BODIES."""
    return BODY_KEPT_MOST if bodies == "keep" else BODY_MOST


def body_read(bodies: str) -> int:
    """How many bytes of one body leave its database at most."""
    return {"keep": BODY_KEPT_MOST, "truncate": 4096, "hash": 32, "drop": 0}[bodies]

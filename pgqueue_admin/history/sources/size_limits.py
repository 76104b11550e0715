"""Size limits of values: larger ones stay in the database and are counted; they fail no batch."""

HEADERS_MOST = 1_000_000  # bytes
BODY_MOST = 16_000_000
MESSAGE_MOST = 16_384  # characters of an error's message, as in headers (wire sheet 7.2); the rest is cut off
BODY_KEPT_MOST = 4_000_000  # with bodies kept whole: several larger ones exceed Java's memory


def body_most(bodies: str) -> int:
    """Largest body read, in bytes. ``bodies``: PGQUEUE_HISTORY_BODIES."""
    return BODY_KEPT_MOST if bodies == "keep" else BODY_MOST


def body_read(bodies: str) -> int:
    """Most bytes of one body that leave the database."""
    return {"keep": BODY_KEPT_MOST, "truncate": 4096, "hash": 32, "drop": 0}[bodies]

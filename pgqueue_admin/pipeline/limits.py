"""What is too large to be kept: it stays in the database, is counted, and fails no batch."""

HEADERS_MOST = 1_000_000  # bytes
BODY_MOST = 16_000_000
BODY_KEPT_MOST = 4_000_000  # where bodies are kept whole: several of more have no room in Java


def body_most(bodies: str) -> int:
    """In bytes. ``bodies``: HISTORY_BODIES."""
    return BODY_KEPT_MOST if bodies == "keep" else BODY_MOST

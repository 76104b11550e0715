"""What is too large to be kept: it stays in the database, is counted, and fails no batch."""

HEADERS_MOST = 1_000_000  # bytes
BODY_MOST = 4_000_000

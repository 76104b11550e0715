"""Ids of messages and conversations."""

import os

_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def new_ids() -> tuple[str, str]:
    """Two texts of random UUIDs, as ``str(uuid4())`` writes them, for a third of what those cost."""
    digits = os.urandom(32).hex()
    return _dashed(digits[:32]), _dashed(digits[32:])


def _dashed(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"

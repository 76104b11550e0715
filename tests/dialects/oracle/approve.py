"""Writes the approved statements anew: ``python -m tests.dialects.oracle.approve``. Read each line that changed."""

from pathlib import Path

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.oracle.dialect import Oracle

APPROVED = Path(__file__).with_name("approved") / "outbox.sql"
TABLE = Address("", "SALES_OD")


def composed() -> dict[str, tuple[str, str]]:
    """Reason and text of each statement by name, as the store composes it, with table names filled in."""
    outbox = Oracle().outbox
    index = Address("", "SALES_OD_IX")
    filled = {"table": TABLE, "key": "SALES_OD_PK", "index": index, "is_over": outbox.is_over, "most": 10}
    return {each.name: (each.why, each(**filled)) for each in outbox}


def text() -> str:
    return "\n\n".join(f"-- {name}: {why}\n{text}" for name, (why, text) in composed().items()) + "\n"


if __name__ == "__main__":
    APPROVED.write_text(text(), encoding="utf-8")

"""Writes the approved statements anew: ``python -m tests.dialects.mysql.approve``. Read each line that changed."""

from pathlib import Path

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.mysql.dialect import mysql

FOLDER = Path(__file__).with_name("approved")
FILES = ("outbox", "decision", "two_phase", "monitor", "lock_waits")
TABLE = Address("", "Sales_OutboxData")


def composed(file: str) -> dict[str, tuple[str, str]]:
    """Reason and text of each statement by name, as the store composes it, with table names filled in."""
    sql = getattr(mysql(), file)
    if file == "two_phase":
        return {each.name: (each.why, each.text.replace("{xid}", "'a', 'stock', 1")) for each in sql}
    filled = {"table": TABLE, "index": "Index_Dispatched", "column": "Dispatched", "most": 10}
    if file == "outbox":
        filled |= {"is_over": sql.is_over, "is_left": sql.is_not_among, "created_at": sql.created_at}
    return {each.name: (each.why, str(each(**filled))) for each in sql}


def text(file: str) -> str:
    return "\n\n".join(f"-- {name}: {why}\n{text}" for name, (why, text) in composed(file).items()) + "\n"


if __name__ == "__main__":
    for each in FILES:
        (FOLDER / f"{each}.sql").write_text(text(each), encoding="utf-8")

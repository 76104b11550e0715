"""A trigger that silently skips rows, as triggers against duplicates do."""

from pgqueue_admin.dialects import Connection


def leaving_out(connection: Connection, table: str, act: str, text: str = "") -> None:
    """Skip rows of ``table`` (an SQL name) at an "insert" or "delete" if their headers contain the text."""
    row = "old" if act == "delete" else "new"
    body = f"begin if strpos({row}.headers, tg_argv[0]) > 0 then return null; end if; return {row}; end"
    connection.run(f"create function leave_out() returns trigger language plpgsql as $$ {body} $$")
    trigger = f"create trigger leave_out before {act} on {table}"
    connection.run(f"{trigger} for each row execute function leave_out('{text}')")

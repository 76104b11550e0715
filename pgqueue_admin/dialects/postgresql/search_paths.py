"""Search paths of our sessions: no schema in them lets anybody else create objects.

PostgreSQL prefers an exact match of argument types to the place in the path, so a stranger's function in any schema of
the path could run in our statements.
"""

CONSOLE_SCHEMA = "pgqueue_console"
CONSOLE = f"pg_catalog, {CONSOLE_SCHEMA}, pg_temp"
QUEUES = "pg_catalog, pg_temp"
_BY_ALIAS = {"default": CONSOLE, "queues": QUEUES}  # of Django's sessions


def of_alias(alias: str) -> dict[str, str]:
    """The setting, where the alias is one of ours."""
    path = _BY_ALIAS.get(alias)
    return {"search_path": path} if path else {}

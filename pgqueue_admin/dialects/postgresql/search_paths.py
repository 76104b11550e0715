"""Search paths of our sessions: no other role can create objects in their schemas.

PostgreSQL prefers an exact match of argument types to the order of the path, so a foreign function in any schema of
the path could run in our statements.
"""

CONSOLE_SCHEMA = "pgqueue_console"
CONSOLE = f"pg_catalog, {CONSOLE_SCHEMA}, pg_temp"
QUEUES = "pg_catalog, pg_temp"
_BY_ALIAS = {"default": CONSOLE, "queues": QUEUES}  # of Django's sessions


def of_alias(alias: str) -> dict[str, str]:
    """The setting for one of our aliases; else empty."""
    path = _BY_ALIAS.get(alias)
    return {"search_path": path} if path else {}

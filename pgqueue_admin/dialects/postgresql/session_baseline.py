"""What a session was opened with: what a statement sets off, a trigger or a policy, may set it otherwise for good."""

# Who we are, what we may do, what statements mean, how long they wait, and what a commit is worth.
SETTINGS = (
    *("role", "session_authorization", "search_path", "row_security", "session_replication_role"),
    *("default_transaction_read_only", "default_transaction_isolation", "default_transaction_deferrable"),
    *("restrict_nonsystem_relation_kind", "transform_null_equals", "standard_conforming_strings", "client_encoding"),
    *("TimeZone", "DateStyle", "IntervalStyle", "bytea_output", "extra_float_digits", "lc_numeric", "array_nulls"),
    *("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "application_name"),
    *("synchronous_commit", "client_min_messages", "default_table_access_method", "temp_file_limit", "work_mem"),
)
# Named in full: whoever has set another search path may have a function of this name in it.
ASK = "select " + ", ".join(f"pg_catalog.current_setting('{name}', true)" for name in SETTINGS)

Given = tuple[bytes | None, ...]


def differences(given: Given, now: Given) -> list[str]:
    return [name for name, before, after in zip(SETTINGS, given, now, strict=True) if before != after]

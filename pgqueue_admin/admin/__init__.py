"""Django admin: the console's nouns, read-only, with the same acts. Importing it registers them (autodiscovery)."""

from pgqueue_admin.admin import (
    archive,
    audit,
    celery_tables,
    endpoint,
    failure_group,
    lease_rule,
    login_redirect,
    masking,
    operation,
    outbox,
    retry_rule,
    schedule,
    users,
)

__all__ = [
    "archive",
    "audit",
    "celery_tables",
    "endpoint",
    "failure_group",
    "lease_rule",
    "login_redirect",
    "masking",
    "operation",
    "outbox",
    "retry_rule",
    "schedule",
    "users",
]

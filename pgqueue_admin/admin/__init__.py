"""Django admin: the same nouns, read-only, with the same acts. Importing registers them, as Django's discovery asks."""

from pgqueue_admin.admin import (
    api_token,
    archive,
    audit,
    celery_tables,
    endpoint,
    failed_sign_ins,
    failure_group,
    login_redirect,
    operation,
    schedule,
    users,
)

__all__ = [
    "api_token",
    "archive",
    "audit",
    "celery_tables",
    "endpoint",
    "failed_sign_ins",
    "failure_group",
    "login_redirect",
    "operation",
    "schedule",
    "users",
]

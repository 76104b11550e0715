"""The PostgreSQL dialect."""

from pgqueue_admin.dialects.postgresql.dialect import PostgreSQL, postgresql

__all__ = ["PostgreSQL", "postgresql"]

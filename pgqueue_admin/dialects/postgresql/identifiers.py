"""PostgreSQL's names in scripts. A longer one is truncated, and could be that of another table or index."""

from pgqueue_admin.dialects.identifier_rules import IdentifierRules

IDENTIFIERS = IdentifierRules(
    '""', 63, "public", in_bytes=True, longest_prefix=20, derived=len("_DispatchedAt"), backslashes="marked"
)

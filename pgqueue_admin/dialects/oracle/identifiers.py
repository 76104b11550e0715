"""Oracle's names, as 12.1 and older accept them. Without a schema, a table is in the session's."""

from pgqueue_admin.dialects.identifier_rules import IdentifierRules

IDENTIFIERS = IdentifierRules(
    '""',
    30,
    longest_schema=128,
    in_bytes=True,
    longest_prefix=25,
    suffix="OD",
    upper_case_ascii=True,
    forbidden=('"',),
)

"""SQL Server's names. In $(…) its command line and its Agent put what they have by that name."""

from pgqueue_admin.dialects.identifier_rules import IdentifierRules

IDENTIFIERS = IdentifierRules("[]", 128, "dbo", forbidden=("$(",), text_quote="N'")

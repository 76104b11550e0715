"""SQL Server's names. Its command line and its Agent replace $(…) by a variable."""

from pgqueue_admin.dialects.identifier_rules import IdentifierRules

IDENTIFIERS = IdentifierRules("[]", 128, "dbo", forbidden=("$(",), text_quote="N'")

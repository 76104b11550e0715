"""Names of MySQL and MariaDB. Without a schema, a table is in the session's database."""

from pgqueue_admin.dialects.identifier_rules import IdentifierRules

IDENTIFIERS = IdentifierRules("``", 64, only_bmp=True, backslashes="hex")

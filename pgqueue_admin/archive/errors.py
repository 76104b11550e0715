"""Why the engine's tables cannot be made or used, in words for the person at the prompt."""


class SchemaRefused(Exception):
    """The schema ``messages`` was left as it is."""


class SchemaForeign(SchemaRefused):
    """Tables of somebody else have the names of ours."""


class SchemaAdoptable(SchemaRefused):
    """The tables are those of oliverlambson/pgmq, and may be adopted."""


class SchemaNewer(SchemaRefused):
    """A newer version of this program made the tables."""


class IndexRefused(SchemaRefused):
    """The archive's texts cannot be indexed here, or not by this role."""


class NoCopy(Exception):
    """No message can be made of it; says why."""

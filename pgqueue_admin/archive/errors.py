"""Why the engine's tables cannot be created or used, worded for the person at the prompt."""


class SchemaRefused(Exception):
    """The schema ``messages`` was left unchanged."""


class SchemaForeign(SchemaRefused):
    """Tables of another program have our names."""


class SchemaAdoptable(SchemaRefused):
    """The tables belong to oliverlambson/pgmq and may be adopted."""


class SchemaNewer(SchemaRefused):
    """A newer version of this program created the tables."""


class IndexRefused(SchemaRefused):
    """The archive's texts cannot be indexed on this server, or not by this role."""


class NoCopy(Exception):
    """The message cannot be copied; the text says why."""

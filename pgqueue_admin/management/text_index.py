"""manage.py engine_schema --index-text, --drop-text-index: the index of the archive's texts; prints its cost first."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pgqueue_admin.archive import text_index
from pgqueue_admin.archive.text_index import Cost
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import about, format_figure, pluralize, size
from pgqueue_admin.models.queue_database import queue_database

ABOUT = about("estimate")
CUT = "A build that is cut leaves an index that nothing uses: run this again, or --drop-text-index."


def build(say: Callable[[str], None], warn: Callable[[str], None], agrees: Callable[[], bool]) -> None:
    """Build the index. Raises SchemaRefused and errors of the database."""
    with _session() as connection:
        found = text_index.facts(connection)
        if found.is_valid:
            return say(f"The archive's texts are indexed already: {size(found.index_bytes)}. Nothing was changed.")
        text_index.refuse(found)
        if sentence := text_index.others_create(found):
            warn(sentence)
        if found.is_there:
            warn("A build was cut and has left an index that nothing uses. It is dropped first.")
        say(_said(text_index.cost(connection), found.archive_bytes))
        if not agrees():
            return say("Nothing was changed.")
        say(f"It is built. {CUT}")
        text_index.build(connection)
        say(f"The archive's texts are indexed: {size(text_index.facts(connection).index_bytes)}. Searches use it now.")


def drop(say: Callable[[str], None]) -> None:
    """Drop the index. Raises likewise."""
    with _session() as connection:
        dropped = text_index.drop(connection)
    say(
        "The index of the archive's texts is dropped; texts are looked for in windows. The extension pg_trgm stays."
        if dropped
        else "There is no index of the archive's texts. Nothing was changed."
    )


def _said(cost: Cost, archive_bytes: int) -> str:
    how = f"tried on {pluralize(cost.sampled, 'message')}" if cost.sampled else "the archive is empty"
    return (
        f"An index of the texts of {format_figure(cost.messages, 'estimate')} messages will take "
        f"{ABOUT}{size(cost.bytes)} beside {size(archive_bytes)} of archive, and {ABOUT}{duration(cost.seconds)} "
        f"to build ({how}). Archiving goes on meanwhile; from then on each archived message costs more."
    )


@contextmanager
def _session() -> Iterator[Connection]:
    """A session of its own: a build has no time limit, and waits for transactions that began before it."""
    database = queue_database()
    with database.dialect.connect(database.dsn, application_name="pgqueue-admin text index") as connection:
        yield connection

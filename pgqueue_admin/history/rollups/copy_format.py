"""A batch's figures in COPY format, built by columns: by rows it would cost as much as counting."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db.models import Model

_AT_ONCE = 10_000  # rows: some megabytes of text
_ESCAPED = {"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"}  # the backslash first
_NULL = r"\N"


class BatchRollups(NamedTuple):
    """Rows of ``model``; the Arrow ``table`` has its columns except the batch."""

    model: type[Model]
    table: Any

    @property
    def names(self) -> list[str]:
        return list(self.table.column_names)

    def lines(self, batch: int | None) -> Iterator[str]:
        """Lines in COPY's text format: the batch's number, then the columns of ``names``."""
        import pyarrow.compute as pc  # only the driver needs it, and it is installed last

        number = _NULL if batch is None else str(batch)
        for part in self.table.to_batches(max_chunksize=_AT_ONCE):
            texts = map(_text, part.columns)
            rows = pc.binary_join_element_wise(number, *texts, "\t", null_handling="replace", null_replacement=_NULL)
            yield "".join(f"{row}\n" for row in rows.to_pylist())


def _text(column: Any) -> Any:
    """Null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(column.type):
        members = pc.binary_join(column.cast(pa.list_(pa.string())), ",")
        return pc.binary_join_element_wise("{", members, "}", "")
    if pa.types.is_timestamp(column.type):  # UTC; formatting with a zone takes 20 times as long
        return pc.binary_join_element_wise(column.cast(pa.timestamp("us")).cast(pa.string()), "Z", "")
    text = column.cast(pa.string())
    if pa.types.is_string(column.type):
        for plain, escaped in _ESCAPED.items():
            text = pc.replace_substring(text, plain, escaped)
    return text

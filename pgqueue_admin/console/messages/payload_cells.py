"""Cells of a row that show fields of its body; on a phone they fold under the row."""

from collections.abc import Iterable
from html import escape

from django.utils.safestring import SafeString

from pgqueue_admin.console import components
from pgqueue_admin.console.messages.payload_columns import PayloadCell

MOST = 80  # characters of a cell


def drawn(cells: Iterable[PayloadCell]) -> SafeString:
    return SafeString("".join(map(_cell, cells)))


def _cell(cell: PayloadCell) -> str:
    said = components.marked(components.truncated(cell.value, MOST))
    shown = f'<span class="faint">{escape(cell.missing)}</span>' if cell.missing else said
    return f'<td role="cell" class="mono" data-l="{components.seen(cell.field)}" dir="auto">{shown}</td>'

"""What the fields of one body say, as cells of a row; on a phone they fold under it."""

from collections.abc import Iterable
from html import escape

from django.utils.safestring import SafeString

from pgqueue_admin.console import components
from pgqueue_admin.console.messages.payload_columns import PayloadCell

MOST = 80  # letters of one


def drawn(cells: Iterable[PayloadCell]) -> SafeString:
    return SafeString("".join(map(_cell, cells)))


def _cell(cell: PayloadCell) -> str:
    said = components.marked(components.truncated(cell.value, MOST))
    shown = f'<span class="faint">{escape(cell.missing)}</span>' if cell.missing else said
    return f'<td role="cell" class="mono" data-l="{components.seen(cell.field)}" dir="auto">{shown}</td>'

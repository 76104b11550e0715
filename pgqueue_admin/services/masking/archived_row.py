"""Rows of the archive without what may not be read."""

from collections.abc import Sequence
from typing import Any

from pgqueue_admin.services.masking.headers import error, masked_text, without_content
from pgqueue_admin.services.masking.message_types import types_of_row
from pgqueue_admin.services.masking.rule import Rule
from pgqueue_admin.transport.wire import headers as h

ROW_ERROR = 400  # characters after which an error in a list is cut
_CONTENT = {
    "exception_message", "exception_message_length", "stack_trace", "stack_trace_length", "details", "message",
    "headers_length",
}  # fmt: skip
# the header whose rule masks each column: the original's free text (details) holds the exception message
_ERRORS = {
    "exception_message": h.EXCEPTION_MESSAGE, "stack_trace": h.EXCEPTION_STACK_TRACE, "details": h.EXCEPTION_MESSAGE,
}  # fmt: skip


class WithheldRow:
    """A row of the archive without its content."""

    __slots__ = ("_row",)

    def __init__(self, row: Any):
        self._row = row

    def __getattr__(self, name: str) -> Any:
        if name in _CONTENT:
            return None
        value = getattr(self._row, name)
        return without_content(value) if name == "headers" else value


class MaskedRow:
    """A row of the archive with masked texts; lengths are those of the masked texts."""

    __slots__ = ("_row", "_rules")

    def __init__(self, row: Any, rules: Sequence[Rule]):
        self._row, self._rules = row, rules

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._row, name)
        if name == "headers":
            return masked_text(value, self._length_of("headers"), self._rules)
        if name == "headers_length":
            return None if value is None or not self._is_changed("headers") else self._shown_length(value)
        if name == "headers_bytes":
            return None if self._is_changed("headers") else value
        if name in _ERRORS:
            return self._error(name, value)
        if name.endswith("_length") and name.removesuffix("_length") in _ERRORS:
            column = name.removesuffix("_length")
            return len(getattr(self, column) or "") if self._is_changed(column) else value
        return None if name == "message" else value

    def _error(self, name: str, value: str | None) -> str | None:
        shown, length = len(value or ""), self._length_of(name)
        is_cut = shown >= ROW_ERROR if length is None else shown < length
        return error(_ERRORS[name], value, self._rules, types_of_row(self._row), is_cut=is_cut)

    def _length_of(self, name: str) -> int | None:
        return getattr(self._row, f"{name}_length", None)

    def _is_changed(self, name: str) -> bool:
        return bool(getattr(self, name) != getattr(self._row, name))

    def _shown_length(self, whole: int) -> int:
        """Keep the length above that of a page's cut headers, so that it still says there are more."""
        shown = len(self.headers or "")
        return shown + 1 if whole > len(self._row.headers or "") else shown

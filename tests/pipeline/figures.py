"""Figures of a batch as Spark gives them, without Spark."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import Model


class Figures(NamedTuple):
    """Of rows that are not stored; all of one model."""

    of: Sequence[Model]

    @property
    def model(self) -> type[Model]:
        return type(self.of[0])

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.model._meta.concrete_fields if field.name not in {"id", "batch"}]

    def rows(self) -> Iterator[Sequence[Any]]:
        return ([getattr(each, name) for name in self.names] for each in self.of)

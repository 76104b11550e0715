"""Figures of a batch as Spark gives them, without Spark."""

from collections.abc import Sequence

import pyarrow as pa
from django.db.models import Model

from pgqueue_admin.history.rollups.copy_format import BatchRollups


def figures(of: Sequence[Model]) -> BatchRollups:
    """Of rows that are not stored; all of one model."""
    fields = of[0]._meta.concrete_fields
    names = [field.name for field in fields if field.name not in {"id", "batch"}]
    return BatchRollups(type(of[0]), pa.table({name: [getattr(each, name) for each in of] for name in names}))

"""Model rows named by an address. A missing row becomes a 404 page with the reason."""

from typing import Any, TypeVar

from django.db.models import Model
from django.http import Http404

Row = TypeVar("Row", bound=Model)


def existing(model: type[Row], otherwise: str, **by: Any) -> Row:
    """Raises Http404 with ``otherwise``."""
    found = model._default_manager.filter(**by).first()
    if found is None:
        raise Http404(otherwise)
    return found

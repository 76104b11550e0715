"""Migrations 0025 and 0034 rename columns and keep their values and unique constraints."""

from datetime import UTC, datetime
from importlib import import_module
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, models
from django.db.migrations.executor import MigrationExecutor

from pgqueue_admin.models import Operation, TrialItem

BEFORE = ("pgqueue", "0018_purge_bounds")
MIGRATIONS = [
    import_module(f"pgqueue_admin.migrations.{name}") for name in ("0025_plain_column_names", "0034_column_names")
]
OURS: dict[str, dict[str, str]] = {
    name: {before: now for each in MIGRATIONS for before, now in each.RENAMED.get(name, {}).items()}
    for name in sorted({name for each in MIGRATIONS for name in each.RENAMED} - {"archivedmessage"})
}
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.usefixtures("console_database")
def test_rows_of_before_survive() -> None:
    call_command("migrate", *BEFORE, verbosity=0)
    apps = MigrationExecutor(connection).loader.project_state(BEFORE).apps
    made = {name: _made(apps, name) for name in OURS}
    stood = {name: {now: getattr(row, before) for before, now in OURS[name].items()} for name, row in made.items()}
    assert all(value not in (None, "", 0, []) for values in stood.values() for value in values.values())
    call_command("migrate", verbosity=0)
    for name, values in stood.items():
        model = _model(name)
        assert model.objects.filter(pk=made[name].pk).values(*values).get() == values, name
    item = TrialItem.objects.get()
    with pytest.raises(IntegrityError):
        TrialItem.objects.create(trial=item.trial, position=item.position, archive_id=2)


@pytest.mark.usefixtures("console_database")
def test_undropped_sets_move_from_sentence_to_column() -> None:
    before = ("pgqueue", "0033_default_views")
    call_command("migrate", *before, verbosity=0)
    operations = (
        MigrationExecutor(connection).loader.project_state(before).apps.get_model("pgqueue", "Operation").objects
    )
    for error in (MIGRATIONS[1].NOT_DROPPED, "The disk is full."):
        operations.create(kind="retry", who="ana", last_error=error)
    call_command("migrate", verbosity=0)
    found = Operation.objects.order_by("pk").values_list("keeps_set", "last_error")
    assert list(found) == [(True, ""), (False, "The disk is full.")]


@pytest.mark.usefixtures("console_database")
def test_no_change_of_a_model_is_without_its_migration() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def _model(name: str) -> Any:
    from django.apps import apps

    return apps.get_model("pgqueue", name)


def _made(apps: Any, name: str) -> Any:
    """A row of the model with a value in each field."""
    model = apps.get_model("pgqueue", name)
    return model.objects.create(**{field.name: _value(apps, field) for field in _written(model)})


def _written(model: Any) -> list[Any]:
    own = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
    return [field for field in own if not getattr(field, "auto_now", False)]


def _value(apps: Any, field: Any) -> Any:
    if field.is_relation:
        found = field.related_model.objects.first()
        return found or _made(apps, field.related_model._meta.model_name)
    if isinstance(field, models.CharField | models.TextField):
        return field.choices[0][0] if field.choices else uuid4().hex[: field.max_length or 10]
    kinds: dict[Any, Any] = {
        models.DateTimeField: NOON, models.DateField: NOON.date(), models.UUIDField: uuid4(), models.BooleanField: True,
        models.JSONField: {"a": 1}, models.FloatField: 1.5, models.IntegerField: 7, models.DecimalField: 7,
    }  # fmt: skip
    for kind, value in kinds.items():
        if isinstance(field, kind):
            return value
    return [_value(apps, field.base_field)]  # an array

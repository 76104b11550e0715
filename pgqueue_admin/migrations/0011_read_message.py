"""Reading what messages say asks a right of its own: everybody who may sign in today gets it, and so does each group."""

from django.conf import settings
from django.db import migrations

PERMISSIONS = [
    ("retry_message", "Can retry dead messages"),
    ("discard_message", "Can discard and restore dead messages"),
    ("run_endpoint", "Can start, stop, scale and pause endpoints"),
    ("change_settings", "Can change peek settings and targets"),
    ("change_schedule", "Can change schedules and send their messages"),
    ("read_message", "Can read message bodies and headers' values"),
]


def give(apps, schema_editor):
    """Django would make the permission only after all migrations."""
    database = schema_editor.connection.alias
    types, permissions = (
        apps.get_model(*model)._default_manager.using(database)
        for model in (("contenttypes", "ContentType"), ("auth", "Permission"))
    )
    people = apps.get_model(settings.AUTH_USER_MODEL)._default_manager.using(database)
    groups = apps.get_model("auth", "Group")._default_manager.using(database)
    kind, _ = types.get_or_create(app_label="pgqueue", model="operation")
    codename, name = PERMISSIONS[-1]
    right, _ = permissions.get_or_create(content_type=kind, codename=codename, defaults={"name": name})
    for person in people.filter(is_active=True).iterator():
        person.user_permissions.add(right)
    for group in groups.iterator():
        group.permissions.add(right)


class Migration(migrations.Migration):
    dependencies = [
        ("pgqueue", "0010_staged_retry"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(name="operation", options={"ordering": ["-id"], "permissions": PERMISSIONS}),
        migrations.RunPython(give, migrations.RunPython.noop, elidable=False),
    ]

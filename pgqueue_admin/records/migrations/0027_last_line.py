"""The last line of a process's log stood in last_error, which everybody is shown; it has a column of its own now."""

from typing import Any

from django.db import migrations, models

BEFORE = "; last line: "


def move(apps: Any, schema_editor: Any) -> None:
    for process in apps.get_model("pgqueue", "Process").objects.filter(last_error__contains=BEFORE):
        process.last_error, _, process.last_line = process.last_error.partition(BEFORE)
        process.save(update_fields=["last_error", "last_line"])


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0026_how_depths_are_known")]

    operations = [
        migrations.AddField(
            model_name="process",
            name="last_line",
            field=models.TextField(blank=True, db_default="", default="", help_text="Of its log, when it ended."),
        ),
        migrations.RunPython(move, migrations.RunPython.noop),
    ]

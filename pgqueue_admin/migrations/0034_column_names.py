from typing import Any

from django.db import migrations, models


def keep_sets(apps: Any, schema_editor: Any) -> None:
    """A sentence in last_error said so before."""
    operations = apps.get_model("pgqueue", "Operation").objects
    operations.filter(last_error="Its set is not dropped yet.").update(keeps_set=True, last_error="")


class Migration(migrations.Migration):
    """The field's words: watermark, checksum, exists, dismissed; and a column instead of a sentence."""

    dependencies = [
        ("pgqueue", "0033_default_views"),
    ]

    operations = [
        migrations.RenameField("historysource", "complete_to", "watermark"),
        migrations.RenameField("historysource", "is_there", "exists"),
        migrations.RenameField("historybatch", "complete_to", "watermark"),
        migrations.RenameField("historybatch", "sum_seq", "seq_checksum"),
        migrations.RenameField("process", "given_up_at", "dismissed_at"),
        migrations.AddField(
            "operation",
            "keeps_set",
            models.BooleanField(default=False, help_text="Given up unstarted; its frozen set is still there."),
        ),
        migrations.RunPython(keep_sets, migrations.RunPython.noop),
    ]

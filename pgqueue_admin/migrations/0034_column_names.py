"""The last columns get the field's names, and a column of its own says what a sentence in last_error said."""

from typing import Any

from django.db import migrations, models

RENAMED = {
    "historysource": {"complete_to": "watermark", "is_there": "exists"},
    "historybatch": {"complete_to": "watermark", "sum_seq": "seq_checksum"},
    "process": {"given_up_at": "dismissed_at"},
}
NOT_DROPPED = "Its set is not dropped yet."


def keep_sets(apps: Any, schema_editor: Any) -> None:
    operations = apps.get_model("pgqueue", "Operation").objects
    operations.filter(last_error=NOT_DROPPED).update(keeps_set=True, last_error="")


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0033_default_views")]

    operations = [
        *[
            migrations.RenameField(model, before, now)
            for model, columns in RENAMED.items()
            for before, now in columns.items()
        ],
        migrations.AddField(
            "operation",
            "keeps_set",
            models.BooleanField(default=False, help_text="Given up unstarted; its frozen set is still there."),
        ),
        migrations.AlterField(
            "retryoutcome",
            "batch",
            models.ForeignKey(
                help_text="Empty: of several, folded or made anew.",
                null=True,
                on_delete=models.CASCADE,
                related_name="retry_outcomes",
                to="pgqueue.historybatch",
            ),
        ),
        migrations.RunPython(keep_sets, migrations.RunPython.noop),
    ]

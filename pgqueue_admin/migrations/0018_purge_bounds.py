"""A purge knows the table that it counted, and says at its end what stays there."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0017_queues_of_other_databases")]

    operations = [
        migrations.AddField(
            "operation",
            "counted_in",
            models.JSONField(
                blank=True, default=dict, help_text="Of a purge: which table it was (archive.purge)."
            ),
        ),
        migrations.AddField(
            "operation",
            "stays",
            models.PositiveIntegerField(help_text="Of a purge that has ended: still in the queue.", null=True),
        ),
    ]

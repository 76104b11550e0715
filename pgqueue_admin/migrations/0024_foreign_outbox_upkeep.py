from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0021_edit_of_many")]

    operations = [
        migrations.AlterModelOptions(
            "foreignoutbox",
            {"ordering": ["schema", "table"], "verbose_name": "outbox", "verbose_name_plural": "outboxes"},
        ),
        migrations.AddField(
            "foreignoutbox",
            "relay_seconds",
            models.PositiveIntegerField(
                null=True, help_text="How long a record was seen waiting when it is sent; empty: none is sent by itself."
            ),
        ),
        migrations.AddField(
            "foreignoutbox",
            "keep_seconds",
            models.PositiveIntegerField(
                null=True, help_text="How long a dispatched record is kept; empty: none is deleted."
            ),
        ),
        migrations.AddField(
            "foreignoutbox",
            "database",
            models.CharField(
                max_length=100, blank=True, default="", help_text="The one that these two were switched on for."
            ),
            preserve_default=False,
        ),
        migrations.AddField("foreignoutbox", "looked_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "foreignoutbox",
            "waiting_since",
            models.DateTimeField(
                null=True,
                help_text="When the oldest record that waited at that look was seen first; empty: none waited.",
            ),
        ),
        migrations.AddField(
            "foreignoutbox", "relayed", models.BigIntegerField(default=0, help_text="Records sent by the relay.")
        ),
        migrations.AddField(
            "foreignoutbox", "cleaned", models.BigIntegerField(default=0, help_text="Records deleted by the clean-up.")
        ),
        migrations.AddField(
            "foreignoutbox",
            "trouble",
            models.TextField(
                blank=True, default="", help_text="Why the last look did not do all that it should."
            ),
            preserve_default=False,
        ),
    ]

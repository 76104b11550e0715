"""A retry may change one header or one field of each; a reveal names the messages that were opened meanwhile."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0020_payload_choice")]

    operations = [
        migrations.AddField(
            "operation",
            "edit",
            models.JSONField(
                null=True, help_text="Of a retry: what is changed in each (services.operations.edits)."
            ),
        ),
        migrations.AddField(
            "maskingreveal",
            "opened",
            models.JSONField(default=list, help_text="Messages that were opened meanwhile, each of which is audited."),
        ),
    ]

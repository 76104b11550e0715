from django.db import migrations, models

from pgqueue_admin.models.fields import TimestampField


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0027_outbox_isolation_default")]

    operations = [
        migrations.CreateModel(
            "AuditIntent",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", TimestampField(auto_now_add=True)),
                ("crossing", models.BigIntegerField(db_index=True)),
                ("entry", models.JSONField(help_text="Columns of an audit entry, by their names.")),
            ],
        ),
    ]

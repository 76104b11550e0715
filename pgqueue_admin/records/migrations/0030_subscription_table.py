"""Endpoints in several schemas share one subscription table, or events of one would never reach the others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0029_acknowledged_count")]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="subscription_table",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="An address; empty: SubscriptionRouting in its own schema.",
                max_length=200,
            ),
        ),
    ]

"""When the last message expired, too: the processes that knew it are gone some day."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0030_subscription_table")]

    operations = [
        migrations.AddField(
            model_name="expiredcount",
            name="last_at",
            field=models.DateTimeField(help_text="When the last was told of. Null: before that was kept.", null=True),
        ),
    ]

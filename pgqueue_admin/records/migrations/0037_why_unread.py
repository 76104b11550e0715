"""By which code of the server a queue could not be read: what to do about it depends on that, not on its words."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0036_received_at")]

    operations = [
        migrations.AddField(
            model_name="latestsample",
            name="sqlstate",
            field=models.CharField(
                blank=True, db_default="", default="", help_text="The server's code, where it refused.", max_length=5
            ),
        ),
    ]

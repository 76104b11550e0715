from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0029_words_of_teams")]

    operations = [
        migrations.AddField(
            "endpoint", "purge_expired_at_start", models.BooleanField(db_default=False, default=False)
        )
    ]

"""Whose a file of depth or of events is, also where the manifest does not name it: noted of those that it names now."""

from django.db import migrations, models

NOTED = """
insert into pgqueue_historytoken (token)
select distinct found[1]::uuid
from pgqueue_historyfile, regexp_match(path, '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}') found
where dataset in ('depth', 'events') and found is not null
"""


class Migration(migrations.Migration):
    dependencies = [("pgqueue", "0033_p99_is_usual")]

    operations = [
        migrations.CreateModel(
            name="HistoryToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("token", models.UUIDField(unique=True)),
            ],
        ),
        migrations.RunSQL(NOTED, migrations.RunSQL.noop),
    ]

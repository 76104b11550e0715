from django.db import migrations


class Migration(migrations.Migration):
    """The field's words: watermark, checksum, exists, dismissed."""

    dependencies = [
        ("pgqueue", "0033_default_views"),
    ]

    operations = [
        migrations.RenameField("historysource", "complete_to", "watermark"),
        migrations.RenameField("historysource", "is_there", "exists"),
        migrations.RenameField("historybatch", "complete_to", "watermark"),
        migrations.RenameField("historybatch", "sum_seq", "seq_checksum"),
        migrations.RenameField("process", "given_up_at", "dismissed_at"),
    ]

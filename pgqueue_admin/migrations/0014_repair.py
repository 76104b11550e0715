from django.db import migrations, models

import pgqueue_admin.models.fields


class Migration(migrations.Migration):

    dependencies = [
        ('pgqueue', '0013_masking'),
    ]

    operations = [
        migrations.AddField(
            model_name='operation',
            name='source',
            field=models.PositiveBigIntegerField(help_text='The operation whose messages it calls back.', null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='restores',
            field=models.BooleanField(default=False, help_text='A retry of discarded messages.'),
        ),
        migrations.AddField(
            model_name='operation',
            name='up_to',
            field=models.BigIntegerField(help_text='The highest seq that a purge takes.', null=True),
        ),
        migrations.AddField(
            model_name='operation',
            name='rules',
            field=models.JSONField(blank=True, default=list, help_text='Of a retry: that were shown to who started it.'),
        ),
        migrations.AlterField(
            model_name='operation',
            name='kind',
            field=models.CharField(choices=[('retry', 'Retry'), ('discard', 'Discard'), ('restore', 'Restore'), ('call back', 'Call Back'), ('purge', 'Purge')], max_length=10),
        ),
        migrations.CreateModel(
            name='RetryRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message_type', models.CharField(blank=True, help_text='* stands for anything. Empty: any.', max_length=400)),
                ('queue', models.CharField(blank=True, help_text='Canonical address where it died. Empty: any.', max_length=400)),
                ('target', models.CharField(help_text='Canonical address of a known input queue.', max_length=400)),
                ('who', models.CharField(max_length=150)),
                ('reason', models.TextField(blank=True)),
                ('created_at', pgqueue_admin.models.fields.TimestampField(auto_now_add=True)),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.CheckConstraint(condition=models.Q(('message_type', ''), ('queue', ''), _negated=True), name='retry_rule_names_something'), models.UniqueConstraint(fields=('message_type', 'queue'), name='retry_rule_once')],
            },
        ),
    ]

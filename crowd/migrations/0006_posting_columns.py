"""What the core kept in `facts`, beside the adapter's own memory, becomes columns."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def carry(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    Posting = apps.get_model("crowd", "Posting")
    for posting in Posting.objects.iterator():
        facts = dict(posting.facts)
        posting.wanted = facts.pop("legible_wanted", posting.places)
        posting.address = facts.pop("legible_address", "") or ""
        posting.fee_rates = facts.pop("legible_fees", {})
        posting.names = list(facts.get("hits", [])) or [name for name in (posting.external_id,) if name]
        posting.facts = facts
        posting.save(update_fields=["wanted", "address", "fee_rates", "names", "facts"])


def give_back(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    Posting = apps.get_model("crowd", "Posting")
    for posting in Posting.objects.iterator():
        facts = {**posting.facts, "legible_wanted": posting.wanted, "legible_address": posting.address}
        posting.facts = {**facts, **({"legible_fees": posting.fee_rates} if posting.fee_rates else {})}
        posting.save(update_fields=["facts"])


class Migration(migrations.Migration):
    dependencies = [("crowd", "0005_posting_keys")]

    operations = [
        migrations.AddField("posting", "wanted", models.PositiveIntegerField(default=0)),
        migrations.AddField("posting", "address", models.CharField(blank=True, max_length=500)),
        migrations.AddField("posting", "fee_rates", models.JSONField(default=dict)),
        migrations.AddField("posting", "names", models.JSONField(default=list)),
        migrations.RunPython(carry, give_back),
    ]

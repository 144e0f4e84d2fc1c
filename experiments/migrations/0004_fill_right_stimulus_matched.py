"""What was derived from an item until now becomes data of the trial: what is right, and which stimulus it
shows.

Slots of studies that opened before are matched by their rank in the condition, as their plans were drawn.
"""

from collections import Counter

from django.db import migrations
from django.db.models import OuterRef, Subquery

BATCH = 2000


def fill(apps, schema_editor):
    Trial, Item, Rendering, Slot = (
        apps.get_model("experiments", name) for name in ("Trial", "Item", "Rendering", "Slot")
    )
    shown = Rendering.objects.filter(item=OuterRef("item"), condition=OuterRef("condition"))
    with_item = Trial.objects.filter(item__isnull=False)
    with_item.filter(stimulus__isnull=True).update(stimulus=Subquery(shown.values("stimulus")[:1]))
    predicted = Item.objects.filter(pk=OuterRef("item")).values("predicted")[:1]
    scored = with_item.filter(kind="predict", check_kind="", right__isnull=True)
    scored.update(right=Subquery(predicted))
    ranks, batch = Counter(), []
    slots = Slot.objects.filter(study__paradigm="meta_predictor", matched__isnull=True)
    for slot in slots.order_by("study", "pilot", "ordinal").iterator(BATCH):
        key = (slot.study_id, slot.pilot, slot.arm)
        slot.matched = ranks[key]
        ranks[key] += 1
        batch.append(slot)
        if len(batch) == BATCH:
            Slot.objects.bulk_update(batch, ["matched"])
            batch = []
    Slot.objects.bulk_update(batch, ["matched"])


class Migration(migrations.Migration):
    dependencies = [("experiments", "0003_plans_carry_all")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]

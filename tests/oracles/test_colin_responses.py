"""The published counts as stored responses: through reader, score and reporter, to the printed table.

A reconstruction from published summaries, not the authors' data.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.utils import timezone
from rich.console import Console
from scipy.stats import dunnett

from analysis.reports.output.terminal import print_report
from analysis.stored_reports.refresh import make_report
from experiments.models import Condition, Item, Participant, Response, Session, Slot, Study, Trial
from experiments.study_files.load import find_study, load_study
from tests.oracles import colin

pytestmark = pytest.mark.django_db
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
CHOICES = [{"value": value, "text": value, "key": key} for value, key in (("husky", "f"), ("wolf", "j"))]


def stored(dataset: str) -> Study:
    """A closed study whose people answered as the counts say; one item, of which the model says "wolf"."""
    definition = load_study(find_study("wolf-or-husky"))
    study = Study.objects.create(
        slug="published",
        title=definition.title,
        paradigm="meta_predictor",
        definition=definition.model_dump(mode="json"),
        digest=definition.digest,
        seed=1,
        state="closed",
        opened_at=START,
        closed_at=timezone.now(),
    )
    item = Item.objects.create(
        study=study, key="one", truth="husky", predicted="wolf", confidence=0.9, group="one",
        logits=[0.0, 1.0], image_key="0" * 64, width_px=64, height_px=64,
    )  # fmt: skip
    people = colin.people(dataset)
    for ordinal, name in enumerate(colin.CONDITIONS):
        role = name if name in {"baseline", "control"} else "method"
        slots = len(people[name])
        condition = Condition.objects.create(study=study, name=name, role=role, ordinal=ordinal, slots=slots)
        for number, counts in enumerate(people[name].tolist()):
            _sitting(study, condition, item, number * len(colin.CONDITIONS) + ordinal, counts)
    return study


def _sitting(study: Study, condition: Condition, item: Item, ordinal: int, counts: list[int]) -> None:
    arm = condition.name
    slot = Slot.objects.create(study=study, ordinal=ordinal, arm=arm, condition=condition, kept=True)
    session = Session.objects.create(
        study=study, participant=Participant.objects.create(study=study), origin="human", state="finished",
        slot=slot, token_hash=f"{ordinal}", media_id=f"{ordinal}", started_at=START, claimed_at=START,
        lease_ends_at=START + timedelta(hours=1), finished_at=START + timedelta(minutes=7), verdict="passed",
    )  # fmt: skip
    Slot.objects.filter(pk=slot.pk).update(holder=session)
    right = [place < count for count in counts for place in range(colin.TRIALS)]
    trials = Trial.objects.bulk_create(
        Trial(
            slot=slot, position=position, remaining=len(right) - position - 1, block=position // colin.TRIALS,
            phase="test", kind="predict", item=item, condition=condition, explained=False, choices=CHOICES,
        )
        for position in range(len(right))
    )  # fmt: skip
    Response.objects.bulk_create(
        Response(
            session=session, trial=trial, position=trial.position, remaining=trial.remaining,
            value={"choice": "wolf" if is_right else "husky"}, rt_ms=1000, shown_ms=2000, late=False,
            received_at=START,
        )
        for trial, is_right in zip(trials, right, strict=True)
    )  # fmt: skip


def printed_rows(study: Study) -> list[list[str]]:
    """The cells of the printed table "Accuracy (%) and Utility", from the right of each condition's name."""
    out = StringIO()
    print_report(make_report(study, "human"), Console(file=out, width=100))
    lines = out.getvalue().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Condition "))
    rows = [line.replace("[", "").replace("]", "").split() for line in lines[start + 1 : start + 9]]
    return [row[next(i for i, cell in enumerate(row) if cell.isdigit()) :] for row in rows]


OTHERS = pytest.mark.long(stays="test_it_prints_table_1_from_stored_responses")


@pytest.mark.parametrize(
    "dataset", ["husky_wolf", pytest.param("leaves", marks=OTHERS), pytest.param("imagenet", marks=OTHERS)]
)
def test_it_prints_table_1_from_stored_responses(dataset: str) -> None:
    rows = printed_rows(stored(dataset))
    names = colin.CONDITIONS
    by_n = [(int(row[0]), tuple(float(cell) for cell in row[1:4])) for row in rows]
    assert by_n == list(zip(colin.SIZES[dataset], colin.ACCURACIES[dataset], strict=True))
    # The paper prints stars of Tukey (test_colin.py); ours are those of the planned contrasts.
    base, *methods = (people.sum(axis=1) / 21 for people in colin.people(dataset).values())
    planned = dict(zip(names[1:], dunnett(*methods, control=base, rng=1).pvalue, strict=True))
    assert {name for name, p in planned.items() if p < 0.05} >= colin.SIGNIFICANT[dataset]
    for name, row, published in zip(names[1:], rows[1:], colin.UTILITIES[dataset], strict=True):
        utility, star = row[5], row[4].endswith("*")
        assert star == (planned[name] < 0.05), name
        if (dataset, name) not in colin.EXCEPTIONS:
            assert float(utility) == pytest.approx(published, abs=0.0051), name

"""What commands share that apply a fitted scorer: its options, and the pictures of a study."""

from __future__ import annotations

import hashlib
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from django.utils import timezone
from numpy.typing import ArrayLike

from analysis.preference.rated_explanations import beside, copies_of, label_of, read_explanation
from analysis.reports.utility.metric_correlation import PREDICTED
from experiments.errors import StudyError
from experiments.models import Rendering, Study
from stimuli.models import Measurement, Stimulus
from stimuli.preference.embedding import ShownExplanation, embed
from stimuli.preference.encoders import EMBEDDED, PreferenceEncoder, open_encoder
from stimuli.preference.prediction_agreement import HIGHEST, LOWEST, Floats
from stimuli.preference.scorer_file import SavedScorer, ScorerCard, load
from stimuli.spec import content_key
from stimuli.store.media_access import current_store

END_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class ToScore:
    """What is scored: its name, the condition of the study if it has one, what people would see, and the
    primary key of the stimulus; of a study also what was explained, and by what."""

    name: str
    condition: str
    shown: ShownExplanation
    stimulus: int | None = None
    dataset: str = ""
    predictor: str = ""
    explainer: str = ""


def add_scorer(parser: ArgumentParser) -> None:
    parser.add_argument("scorer", type=Path, help="the file that fit_preference wrote")
    parser.add_argument("--encoder", default=EMBEDDED, metavar="DIR", help="the one that it was fitted with")
    parser.add_argument("--device", default="cpu", help="where the encoder runs (cpu)")


def add_study(parser: ArgumentParser) -> None:
    parser.add_argument("study", metavar="SLUG", help="whose explanations are rendered")
    parser.add_argument("--question", default="", help="of the scorer (its first)")


def open_scorer(options: dict[str, Any]) -> tuple[SavedScorer, PreferenceEncoder]:
    """Scorer and encoder of these options. Raises BadSpec for either."""
    return load(options["scorer"]), open_encoder(options["encoder"], options["device"])


def question_of(card: ScorerCard, asked: str) -> str:
    """The question that was asked for, or the first. Raises BadRatings for one that it does not answer."""
    names = list(dict.fromkeys(head.question for head in card.heads))
    if asked and asked not in names:
        raise StudyError(f"The scorer does not answer {asked!r}; known are {', '.join(names)}.")
    return asked or names[0]


def of_study(slug: str, card: ScorerCard) -> list[ToScore]:
    """Every explanation of a study that is rendered, without perturbed copies; for a scorer of pairs those
    that have the copy, with its picture. Raises StudyError for none."""
    study = Study.objects.filter(slug=slug).first()
    if study is None:
        raise StudyError(f'There is no study "{slug}" here.')
    rows = Rendering.objects.filter(item__study=study, item__copy_of=None)
    rows = rows.select_related("item", "condition", "stimulus").prefetch_related("item__predictions")
    rows = rows.order_by("condition__ordinal", "item__key")
    store, made = current_store(), []
    copies = None if card.inputs == "single" else copies_of(study, card.inputs)
    explainers = explainer_names(study)
    for row in rows:
        if not row.stimulus.explainer or row.stimulus.state != Stimulus.State.DONE:
            continue
        copy = copies.get((row.item.key, row.condition.name)) if copies is not None else None
        if copies is not None and (copy is None or copy.stimulus.state != Stimulus.State.DONE):
            continue
        shown = read_explanation(row.stimulus, store, label_of(row, card.label))[0]
        if copy is not None:
            shown = beside(shown, copy, store)
        explainer = explainers[row.condition.name] or row.stimulus.explainer
        of = row.condition.dataset, row.condition.predictor, explainer
        made.append(ToScore(row.item.key, row.condition.name, shown, row.stimulus_id, *of))
    if not made:
        what = "explanation" if copies is None else f"explanation with a {card.inputs} copy"
        raise StudyError(f'"{slug}" has no {what} that is rendered; run build_stimuli {slug}.')
    return made


def explainer_names(study: Study) -> dict[str, str]:
    """By condition the name of its explainer, with those parameters in which explainers of that name differ;
    "" for a condition without one."""
    every = dict(study.conditions.values_list("name", "explainer"))
    rows = {condition: explainer for condition, explainer in every.items() if explainer}
    made = dict.fromkeys(every, "")
    for condition, explainer in rows.items():
        alike = [other for other in rows.values() if other["name"] == explainer["name"]]
        differ = [
            f"{key} {value}"
            for key, value in explainer.items()
            if any(other.get(key) != value for other in alike)
        ]
        made[condition] = ", ".join([explainer["name"], *differ])
    return made


def sentences_of(slug: str, card: ScorerCard) -> dict[str, str]:
    """What a scorer reads in place of the picture of a list of concepts, by the SHA-256 of that picture."""
    rows = of_study(slug, card)
    said = {row.stimulus: row.shown.text for row in rows if row.stimulus is not None and row.shown.text}
    drawn = Stimulus.objects.filter(pk__in=said).exclude(explanation_file="")
    store = current_store()
    return {hashlib.sha256(store.get(row.explanation_file)).hexdigest(): said[row.pk] for row in drawn}


def predicted_of(
    rows: Sequence[ToScore],
    saved: SavedScorer,
    encoder: PreferenceEncoder,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Floats:
    """Predicted ratings, 1..5, float64 (n, heads)."""
    subjects, pairs = [row.shown for row in rows], saved.card.inputs != "single"
    vectors = embed(subjects, encoder, saved.card.labels, pairs=pairs, progress=progress)
    return saved.predict(vectors, encoder).reshape(len(rows), -1)


def keep(rows: Sequence[ToScore], table: pd.DataFrame, scorer: Path, encoder: str) -> int:
    """Store the predicted ratings as measurements of the stimuli, one per question; how many are new.

    `table` has rows in the order of `rows` for each `question`, with `predicted` and `sd`. They are named
    "predicted_" and the question, with the scorer's digest as parameter, and never stand among ratings.
    """
    parameters = {"scorer": hashlib.sha256(scorer.read_bytes()).hexdigest()[:16], "encoder": encoder}
    before = Measurement.objects.count()
    wanted = []
    keys = [row.stimulus for row in rows if row.stimulus is not None]
    for question, part in table.groupby("question", sort=False):
        name = f"{PREDICTED}{question}"
        key = content_key({"metric": name, **parameters})
        for stimulus, value, sd in zip(keys, part["predicted"], part["sd"], strict=True):
            details = {} if np.isnan(sd) else {"sd": float(sd)}
            wanted.append(
                Measurement(
                    stimulus_id=stimulus, key=key, metric=name, parameters=parameters, value=float(value),
                    unit="predicted rating, 1 to 5", better="higher", scores="drawn", details=details,
                    measured_at=timezone.now(),
                )
            )  # fmt: skip
    Measurement.objects.bulk_create(wanted, ignore_conflicts=True)
    return Measurement.objects.count() - before


def at_ends(predicted: ArrayLike) -> str:
    """A sentence if predicted ratings lie at an end of the scale; "" if few do."""
    values = np.asarray(predicted, dtype=np.float64).ravel()
    count = int(((values <= LOWEST) | (values >= HIGHEST)).sum())
    if count <= END_SHARE * values.size:
        return ""
    return (
        f"{count} of {values.size} predicted ratings lie at an end of the scale: these pictures are unlike "
        "those that the scorer learned from, and it cannot tell them apart."
    )


def heads_of(card: ScorerCard, question: str) -> Sequence[bool]:
    """Which heads answer the question."""
    return [head.question == question for head in card.heads]

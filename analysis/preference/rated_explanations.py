"""Rated explanations, of a study, of files in PASTA's format or of a synthetic twin, in one form."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.pasta_records import QUESTIONS, ratings_from
from analysis.ratings import rated_once, rating_rows
from analysis.seal import seal_of
from analysis.stats.intervals_and_checks import Floats
from analysis.tables.response_reader import read_frames, study_facts
from experiments.kinds import get_kind
from experiments.models import Rendering, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.rating import Pair, RatingDesign
from stimuli.errors import BadRatings
from stimuli.models import Stimulus
from stimuli.preference.embedding import ShownExplanation
from stimuli.preference.map_property_baseline import properties_of
from stimuli.preference.synthetic_twin import QUESTIONS as OF_TWIN
from stimuli.preference.synthetic_twin import Plant, draw_twin
from stimuli.render.attribution_field import drawn_field, strength
from stimuli.render.sentences import PASTA, SentenceSpec, sentence
from stimuli.spec import StimulusSpec
from stimuli.store import Store
from stimuli.store.files import read_attribution
from stimuli.types import ConceptAttribution, PixelAttribution, Progress

PICTURE_MAX = 20 * 2**20


@dataclass(frozen=True, eq=False)
class RatedExplanations:
    """Explanations (n,): what people saw, of which image, made by which method on which model (`methods`, and
    `makers` without the model), from which dataset. `ratings` (n, Q, R), 1..5, NaN for none; the order of
    raters says nothing. `plain` (n, 5), the properties of the drawn map, None if some have no map. `planted`
    (n, Q) of a twin alone. `origin` says whose ratings they are.
    """

    subjects: tuple[ShownExplanation, ...]
    images: tuple[str, ...]
    methods: tuple[str, ...]
    makers: tuple[str, ...]
    datasets: tuple[str, ...]
    questions: tuple[str, ...]
    ratings: Floats
    plain: Floats | None
    origin: str
    planted: Floats | None = None

    def __post_init__(self) -> None:
        if len(self.subjects) < 2 or not (~np.isnan(self.ratings)).any():
            raise BadRatings(
                f"{len(self.subjects)} explanations have ratings, and a scorer needs more than a handful: "
                "give those of a finished study, or files with records"
            )

    @property
    def raters(self) -> Floats:
        """Ratings per explanation and question (n, Q)."""
        return np.asarray((~np.isnan(self.ratings)).sum(axis=2), dtype=np.float64)

    @property
    def digest(self) -> str:
        """Of the ratings and of what was rated."""
        total = hashlib.sha256("\n".join(self.questions).encode())
        for row in zip(self.subjects, self.images, self.methods, self.datasets, strict=True):
            total.update("\x1f".join((row[0].digest, row[0].label, *row[1:])).encode() + b"\n")
        total.update(np.ascontiguousarray(np.nan_to_num(self.ratings)).tobytes())
        return total.hexdigest()


def from_twin(plant: Plant, images: int, seed: int) -> RatedExplanations:
    """The synthetic twin of PASTA, halves of whose images count as two datasets."""
    twin = draw_twin(plant, images=images, seed=seed)
    halves = tuple(f"half {int(name.split()[1]) % 2}" for name in twin.images)
    return RatedExplanations(
        twin.subjects, twin.images, twin.methods, twin.methods, halves, OF_TWIN, twin.ratings,
        twin.properties, f"simulated raters of a twin with {plant} planted", twin.values,
    )  # fmt: skip


def from_records(
    records: Path, folder: Path, *, label: str = "none", spec: SentenceSpec = PASTA
) -> RatedExplanations:
    """A file of records with the pictures that it names in `folder`, or, of concepts, JSON files of concept
    to value by the same names. `label` "truth" or "predicted" puts the record's class beside the embedding.
    Maps of the same names as .npy give the properties.

    Raises BadRatings for an explanation that is not in the folder; BadRecords as `read_records`.
    """
    table = ratings_from(records)
    rows = table.drop_duplicates("explanation").sort_values("explanation")
    # A name that does not tell image and explainer is a group of its own.
    image = rows["img"].astype(str)
    method = rows["explainer"].astype("string").fillna(rows["explication"]).astype(str)
    truth = {"truth": "GTclass", "predicted": "predictedclass"}.get(label)
    labels = rows[truth].astype(str) if truth else pd.Series("", index=rows.index)
    subjects = tuple(
        _of_file(folder, name, told, spec)
        for name, told in zip(rows["explication"].astype(str), labels, strict=True)
    )
    units = table.assign(unit=table["explanation"])
    return RatedExplanations(
        subjects, tuple(image), tuple(method), tuple(method), tuple(rows["dataset"].astype(str)), QUESTIONS,
        _units(units, list(rows["explanation"]), QUESTIONS), _maps(folder, rows["explication"].astype(str)),
        f"records of {records.name}",
    )  # fmt: skip


def _of_file(folder: Path, name: str, label: str, spec: SentenceSpec) -> ShownExplanation:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise BadRatings(f"the records name {name!r}, which lies outside {folder}: put all files into it")
    concepts = path.with_suffix(".json")
    if path.suffix != ".json" and path.is_file():
        if path.stat().st_size > PICTURE_MAX:
            raise BadRatings(f"{path} has more than {PICTURE_MAX:,} bytes: give a smaller picture")
        return ShownExplanation(picture=path.read_bytes(), label=label)
    if concepts.is_file():
        try:
            values = pd.read_json(concepts, typ="series").astype(float)
        except (ValueError, TypeError) as error:
            raise BadRatings(f"{concepts} is no JSON of concept to number ({error}): write it anew") from None
        made = ConceptAttribution(
            tuple(map(str, values.index)), values.to_numpy(np.float32), "descending", ""
        )
        return ShownExplanation(text=sentence(made, spec), label=label)
    raise BadRatings(f"the records name {name!r}, which is not in {folder}: put picture or concepts there")


def _maps(folder: Path, names: Sequence[str]) -> Floats | None:
    files = [(folder / name).with_suffix(".npy") for name in names]
    if not all(file.is_file() for file in files):
        return None
    return np.array([_properties(np.load(file, allow_pickle=False)) for file in files])


def _properties(values: Floats) -> Floats:
    """Of a map scaled to its largest magnitude."""
    most = float(np.abs(values).max()) or 1.0
    return properties_of(np.asarray(np.clip(values, 0, None) / most, np.float32))


def _units(table: pd.DataFrame, order: Sequence[object], questions: Sequence[str]) -> Floats:
    """(n, Q, R) of rows with `unit`, `question` and `value`, explanations in `order`."""
    given = table.dropna(subset=["value"])
    place = {unit: at for at, unit in enumerate(order)}
    rater = given.groupby(["unit", "question"], sort=False).cumcount().to_numpy()
    made = np.full((len(order), len(questions), int(rater.max(initial=0)) + 1), np.nan)
    asked = {name: at for at, name in enumerate(questions)}
    rows = [place[unit] for unit in given["unit"]]
    made[rows, [asked[name] for name in given["question"]], rater] = given["value"].astype(float)
    return made


def from_study(
    study: Study, store: Store, *, origin: str = "human", label: str = "none", pair: Pair = "",
    spec: SentenceSpec = PASTA, progress: Progress = lambda what, done, total: None,
) -> RatedExplanations:  # fmt: skip
    """The ratings that the kept people of a study gave, with the pictures that they saw; concepts as the
    sentence of `spec`. `label` "truth" or "predicted" puts the item's class beside the embedding. With
    `pair`, the questions that compare with that copy alone, with its picture too. Raises BadRatings for a
    study that asks for no such ratings or whose results are sealed.
    """
    if not all(get_kind(kind).asks_models for kind in get_paradigm(study.paradigm).kinds):
        raise BadRatings(
            f'"{study.slug}" is a study of the paradigm {study.paradigm}, whose trials are no ratings: name '
            "a study of ratings"
        )
    # Predicted ratings by condition would tell what the seal keeps.
    facts = study_facts(study, origin)
    seal = seal_of(facts, origin)
    if seal.sealed:
        raise BadRatings(f"{seal.sentence} A scorer learned from them would tell them: wait until then.")
    kept = read_frames(study, progress=progress).only(origin).confirmed().kept()
    rows = rated_once(rating_rows(kept))
    if rows.empty:
        raise BadRatings(
            f'"{study.slug}" has no ratings of origin {origin} that count: wait for '
            "people, or name another --origin"
        )
    if pair:
        rows = _rows_of_pair(rows, RatingDesign(**facts.design), pair)
    copies = copies_of(study, pair) if pair else {}
    units = list(dict.fromkeys(zip(rows["item"], rows["condition"], strict=True)))
    renderings = {
        (row.item.key, row.condition.name): row
        for row in Rendering.objects.filter(item__study=study)
        .select_related("item", "condition", "stimulus")
        .prefetch_related("item__predictions")
    }
    shown, plain = [], []
    for done, unit in enumerate(units):
        progress("reading pictures", done, len(units))
        row = renderings[unit]
        subject, properties = read_explanation(row.stimulus, store, label_of(row, label), spec)
        shown.append(beside(subject, copies[unit], store) if pair else subject)
        plain.append(properties)
    progress("reading pictures", len(units), len(units))
    rows = rows.assign(unit=list(zip(rows["item"], rows["condition"], strict=True)), value=rows["asked"])
    questions = tuple(dict.fromkeys(rows["question"]))
    of = [renderings[unit] for unit in units]
    return RatedExplanations(
        tuple(shown),
        tuple(str(item) for item, _ in units),
        tuple(str(condition) for _, condition in units),
        tuple(row.stimulus.explainer or str(unit[1]) for row, unit in zip(of, units, strict=True)),
        tuple(row.condition.dataset or study.slug for row in of),
        questions,
        _units(rows, units, questions),
        np.array(plain) if all(row is not None for row in plain) else None,
        f'{origin} ratings of the study "{study.slug}"',
    )


def _rows_of_pair(rows: pd.DataFrame, design: RatingDesign, pair: Pair) -> pd.DataFrame:
    """Those of questions that compare with that copy. Raises BadRatings for none."""
    names = [row.id for row in design.rows if row.pair == pair]
    made = rows[rows["question"].isin(names)]
    if made.empty:
        raise BadRatings(
            f"no rating compares an explanation with that of its {pair} copy: leave --pair out, or name a "
            "study with such a question"
        )
    return made


def copies_of(study: Study, pair: Pair) -> dict[tuple[str, str], Rendering]:
    """What is drawn on the light or strong copy of each explained picture, by item and condition."""
    rows = Rendering.objects.filter(item__copy_of__study=study, item__perturbation__aim=pair)
    rows = rows.select_related("item__copy_of", "condition", "stimulus")
    return {(row.item.copy_of.key, row.condition.name): row for row in rows if row.item.copy_of}


def beside(shown: ShownExplanation, copy: Rendering, store: Store) -> ShownExplanation:
    """The explanation with that of its copy. Raises BadRatings for concepts."""
    other, _ = read_explanation(copy.stimulus, store, "")
    if shown.text or other.text:
        raise BadRatings("a scorer of pairs takes pictures, and an explanation is a list of concepts")
    return replace(shown, other=other.picture)


def label_of(row: Rendering, label: str) -> str:
    """The class of an explanation's picture, or what the model that is explained says of it; "" for none."""
    if label == "predicted":
        said = {other.predictor: other.predicted for other in row.item.predictions.all()}
        return said.get(row.condition.predictor, row.item.predicted)
    return row.item.truth if label == "truth" else ""


def read_explanation(
    stimulus: Stimulus, store: Store, label: str, spec: SentenceSpec = PASTA
) -> tuple[ShownExplanation, Floats | None]:
    """What people saw of a stimulus, and the properties of its drawn map, None if it has none."""
    made = read_attribution(store, stimulus.attribution_key) if stimulus.explainer else None
    if isinstance(made, ConceptAttribution):
        return ShownExplanation(text=sentence(made, spec), label=label), None
    file = stimulus.explanation_file or stimulus.image_file
    plain = None
    if isinstance(made, PixelAttribution):
        recipe = StimulusSpec.from_json(stimulus.spec).render
        plain = properties_of(strength(drawn_field(made, recipe)))
    return ShownExplanation(picture=store.get(file), label=label), plain

"""From pictures, a network and a few wishes to a study that is not refused: what its answers ask for."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from crowd.new_study.picture_folder import PictureFolder
from crowd.new_study.study_files import PARADIGMS, NewStudy
from crowd.study_check.dry_run import dry_run
from crowd.study_check.model_lines import accuracy_lines
from experiments.design.cell_balance import most_needed
from experiments.drafting.model_answers import ModelPredictions, looks_of
from experiments.drafting.model_survey import ask
from experiments.errors import StudyError, sentence
from experiments.paradigms.base import SurveyItem
from stimuli.errors import StimulusError
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.files.network_export import NetworkFile, network_file
from stimuli.quality.model_faults import causes, unknowing
from stimuli.spec import JsonValue
from stimuli.store import Store

SIZES = ((3, 5, 7), (3, 4, 4), (2, 4, 4))
"""Blocks, training and test trials of each: the paper's first, then what fewer wrong predictions allow."""
SLUG = re.compile(r"[a-z0-9][a-z0-9_\-]{0,62}")
ONLY = ("", "")
"""The source of a study with one dataset and one predictor."""
Channels = tuple[float, float, float]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the researcher said. Empty `network`, `answers`, `labels` and None are chosen here."""

    folder: Path
    pictures: PictureFolder
    weights: Path
    contact: str
    network: str = ""
    answers: tuple[str, ...] = ()
    paradigm: str = PARADIGMS[0]
    labels: tuple[str, ...] = ()
    shows: str = "pictures"
    input_px: int = 224
    mean: Channels | None = None
    std: Channels | None = None


def make_new_study(wishes: Wishes, store: Store, progress: Progress, tell: Callable[[str], None]) -> Path:
    """The new study.toml, in a folder that study_check does not refuse. `tell` gets what was seen of the
    network.

    Raises StudyError or StimulusError, with the remedy, if the folder is there, if the network does not fit,
    answer or know the pictures, or is wrong on too few of them; then nothing is written.
    """
    if wishes.folder.exists():
        raise StudyError(f"{wishes.folder} is there already: name another folder.")
    if not SLUG.fullmatch(slug := wishes.folder.name):
        raise StudyError(
            f"{slug!r} is to be the study's slug: name the folder by 1 to 63 lower-case letters, digits, "
            "hyphens and underscores."
        )
    classes = wishes.pictures.dataset.labels
    network = network_file(wishes.weights, wishes.network, wishes.input_px, len(wishes.labels or classes))
    study = _first(wishes, network)
    names = ", ".join(wishes.labels or classes)
    tell(f"{wishes.weights.name}: {network.words}; {network.logits} answers, in this order: {names}")
    wishes.folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".new-study-", dir=wishes.folder.parent))
    try:
        (making / network.name).write_bytes(network.data)
        study = _chosen(study, wishes, making, store, progress, tell)
        run = dry_run(study.write(making), making, store, progress)
        if faults := [*([run.imbalance] if run.imbalance else []), *run.unfit]:
            raise StudyError(sentence("; ".join(faults)))
        making.chmod(0o755)
        making.rename(wishes.folder)
    except (OSError, StudyError, StimulusError) as error:
        raise StudyError(f"Nothing was written: {error}") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return wishes.folder / "study.toml"


def _first(wishes: Wishes, network: NetworkFile) -> NewStudy:
    """Before the network was asked. Raises StudyError for names and numbers that do not fit."""
    classes = wishes.pictures.dataset.labels
    labels = wishes.labels or classes
    if len(labels) != network.logits:
        raise StudyError(
            f"The network gives {network.logits} answers, and there are {len(labels)} names for them "
            f"({', '.join(labels[:8])}): give all of them in the order of its training with --labels."
        )
    known = [name for name in classes if name in labels]
    strange = [name for name in wishes.answers if name not in known]
    if strange or len(known) < 2 or len(set(wishes.answers)) not in {0, 2}:
        raise StudyError(
            f"answers = {', '.join(wishes.answers) or 'none'}: two names are needed that are classes of the "
            f"folder ({', '.join(classes)}) and answers of the network ({', '.join(labels[:8])})."
        )
    predictor: dict[str, JsonValue] = {
        "name": "torch_image",
        "weights": network.name,
        "labels": list(labels),
        "input_px": wishes.input_px,
        "mean": [0.0] * 3,
        "std": [1.0] * 3,
        **network.table,
        **({"mean": list(wishes.mean)} if wishes.mean else {}),
        **({"std": list(wishes.std)} if wishes.std else {}),
    }
    return NewStudy(
        slug=wishes.folder.name,
        paradigm=wishes.paradigm,
        contact=wishes.contact,
        shows=wishes.shows,
        dataset=wishes.pictures.table_from(wishes.folder),
        answers=wishes.answers or (known[0], known[1]),
        predictor=predictor,
        why={} if wishes.mean or wishes.std or "mean" in network.table else {"mean": _UNSAID},
    )


_UNSAID = "Not said, so it gets 0 to 1. If its training had others, they belong here."


def _chosen(
    study: NewStudy,
    wishes: Wishes,
    making: Path,
    store: Store,
    progress: Progress,
    tell: Callable[[str], None],
) -> NewStudy:
    """With the normalisation, layer, method, answers and sizes that the network's own answers ask for."""
    study, asked = _normalised(study, making, store, progress)
    predictor = asked.first.predictor
    assert isinstance(predictor, TorchPredictor)
    if predictor.layer and not predictor.no_gradient:
        table = {**study.predictor, "layer": predictor.layer}
        why = {**study.why, "layer": "What Grad-CAM reads: the last layer whose output is a map."}
        study = replace(study, method="grad_cam", predictor=table, why=why)
    items = [item for item in asked.surveys[ONLY].items if item.use == "task"]
    if not wishes.answers:
        known = [name for name in wishes.pictures.dataset.labels if name in predictor.labels]
        pairs = combinations(known, 2)
        study = replace(study, answers=max(pairs, key=lambda pair: min(_cells(items, pair).values())))
    look = looks_of(study.write(making), asked, store)[ONLY]
    tell(accuracy_lines(look)[0].rstrip("."))
    if study.has_size and (unknown := unknowing(look)):
        raise StudyError(sentence("; ".join([unknown, *causes(look)])))
    if "mean" in study.why:
        tell(f"mean = {study.predictor['mean']}, std = {study.predictor['std']}: {study.why['mean']}")
    return _sized(study, items) if study.has_size else study


def _normalised(
    study: NewStudy, making: Path, store: Store, progress: Progress
) -> tuple[NewStudy, ModelPredictions]:
    """With a usual normalisation if none was said and the network is right more often with it; and what the
    network answers."""
    definition = study.write(making)
    asked = ask(definition, making, store, progress)
    better = looks_of(definition, asked, store)[ONLY].better
    if "mean" not in study.why or better is None:
        return study, asked
    why = (
        f"Not said: with {better.words} it is right on {better.right} of {better.of} pictures, without on "
        f"{better.before}. Compare with its training."
    )
    table = {**study.predictor, "mean": list(better.mean), "std": list(better.std)}
    study = replace(study, predictor=table, why={**study.why, "mean": why})
    return study, ask(study.write(making), making, store, progress)


def _cells(items: Sequence[SurveyItem], answers: Sequence[str]) -> Counter[tuple[str, bool]]:
    """How often each of two answers is given rightly and wrongly, about pictures of the two."""
    both = [item for item in items if item.truth in answers and item.predicted in answers]
    counts = Counter((item.predicted, item.truth == item.predicted) for item in both)
    return Counter({(name, kind): counts[name, kind] for name in answers for kind in (True, False)})


def _sized(study: NewStudy, items: Sequence[SurveyItem]) -> NewStudy:
    """With the largest session that the pictures allow. StudyError if even the smallest is too large."""
    cells = _cells(items, study.answers)
    least = min(cells.values())
    for size in SIZES:
        blocks, train, test = size
        needed = max(most_needed(study.answers, True, blocks * train, blocks * test)[0].values())
        if needed <= least:
            usual = "As in Colin et al. (2022)" if size == SIZES[0] else "Fewer than usual"
            why = (
                f"{usual}: a session needs {needed} right and wrong predictions of each answer, there are at "
                f"least {least}."
            )
            return replace(study, size=size, sizes=why)
    told = ", ".join(f"{'right' if kind else 'wrong'} on {cells[a, kind]} as {a!r}" for a, kind in cells)
    raise StudyError(
        f"A session needs at least {needed} right and {needed} wrong predictions of each answer; the network "
        f"is {told}. Without wrong ones nothing tells people who understand it from people who know the "
        "classes: add pictures on which it errs, take a weaker network, or ask with --paradigm rating how "
        "good its explanations are."
    )

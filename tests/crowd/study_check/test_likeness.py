"""Which text is nearest, by words in common: against a count by hand, and inside a whole dry run."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from crowd.study_check.dry_run import dry_run, warnings_of
from crowd.study_check.pixel_and_word_features import word_counts
from experiments.drafting.draft import gather
from experiments.study_files.load import load_study
from stimuli.datasets.synthetic.sentences import SentencesDataset
from stimuli.store.media_access import current_store
from tests.experiments.protocols import SENTENCES, TURING, write

TEXTS = ("The old cat sleeps.", "An old dog sleeps, the OLD dog!", "Two birds sing", "the old CAT sleeps", "")


def cosine(first: str, second: str) -> float:
    a, b = (Counter(re.findall(r"\w+", text.lower())) for text in (first, second))
    size = np.sqrt(sum(n * n for n in a.values()) * sum(n * n for n in b.values()))
    return float(sum(n * b[word] for word, n in a.items()) / size) if size else 0.0


@pytest.mark.pure
def test_texts_are_as_near_as_they_share_words() -> None:
    for first in TEXTS:
        for second in TEXTS:
            assert word_counts(first) @ word_counts(second) == pytest.approx(cosine(first, second), abs=1e-6)
    assert np.array_equal(word_counts(TEXTS[0]), word_counts(TEXTS[3])) and not word_counts("").any()
    units = (0, 2), (2, 3), (3, 5)
    assert np.array_equal(
        word_counts("请退Ab请退", units), word_counts("请退 A b请", ((0, 2), (3, 4), (5, 7)))
    )


@pytest.mark.django_db
def test_a_dry_run_of_texts_answers_by_the_nearest_training_text(tmp_path: Path, store_folder: Path) -> None:
    """Again with cosines by hand, over all plans; ties count as even guesses."""
    tables = TURING.replace("train_items = 3", "train_items = 8").replace("test_items = 2", "test_items = 6")
    (tmp_path / "t").mkdir()
    path = write(tmp_path / "t", "letters", "reverse_turing", tables, sources=SENTENCES)
    path.write_text(
        path.read_text().replace('items = 8\nbalance = "none"', 'items = 30\nbalance = "prediction"')
    )
    definition = load_study(path)
    run = dry_run(definition, path.parent, current_store(), lambda *_: None)
    gathered = gather(definition, path.parent, current_store(), lambda *_: None)
    says = {item.key: item.predicted for item in gathered.material.pool.items}
    dataset = gathered.first.dataset
    assert isinstance(dataset, SentencesDataset)
    right, total = 0.0, 0
    for plan in run.plans:
        learned = [t.item for t in plan.trials if t.phase == "train" and t.item]
        for trial in plan.trials:
            if trial.phase != "test" or trial.check or trial.item is None:
                continue
            near = [cosine(dataset.text(trial.item), dataset.text(item)) for item in learned]
            labels = [says[i] for i, value in zip(learned, near, strict=True) if value > max(near) - 1e-6]
            right += labels.count(says[trial.item]) / len(labels)
            total += 1
    (score,) = [s for s in run.blind if s.strategy == "nearest"]
    assert score.pooled == pytest.approx(right / total)
    assert run.is_of_texts and total == 6 * len(run.plans)
    likely = dataclasses.replace(run, blind=(dataclasses.replace(score, pooled=0.7),))
    (told,) = [warning for warning in warnings_of(likely) if "nearest" in warning]
    assert told.startswith("the label of the nearest training text, by words in common, is right in 0.70")

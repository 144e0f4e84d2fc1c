"""The embedded sentences: what is planted is there, and no simpler property predicts it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stimuli.datasets.synthetic.grammar_words import BLAME, DETERMINERS, PRAISE
from stimuli.datasets.synthetic.sentences import BINS, LABELS, SentencesDataset, open_sentences
from stimuli.errors import BadSpec
from stimuli.spec import Component

pytestmark = pytest.mark.pure


@cache
def sentences(task: str, seed: int = 0) -> SentencesDataset:
    params = {"task": task, "count": 120, "model_count": 600, "seed": seed}
    return open_sentences(Component("sentences", params), Path())


def texts_of(dataset: SentencesDataset, split: str) -> list[str]:
    return [dataset.text(item.key) for item in dataset.items(split)]  # type: ignore[arg-type]


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@pytest.mark.parametrize("task", list(LABELS))
class TestEveryTask:
    def test_it_has_equal_classes_on_both_sides(self, task: str) -> None:
        dataset = sentences(task)
        for split, count in (("model", 600), ("people", 120)):
            truths = [item.truth for item in dataset.items(split)]  # type: ignore[arg-type]
            assert {truths.count(label) for label in dataset.labels} == {count // len(dataset.labels)}

    def test_it_writes_no_sentence_twice(self, task: str) -> None:
        dataset = sentences(task)
        texts = texts_of(dataset, "model") + texts_of(dataset, "people")
        assert len(set(texts)) == len(texts) == 720

    def test_it_uses_no_word_twice_in_a_sentence(self, task: str) -> None:
        for text in texts_of(sentences(task), "people"):
            words = [word for word in words_of(text) if word not in {"has", "and"}]
            assert len(set(words)) == len(words), text

    def test_it_keeps_the_classes_and_nearly_all_sentences_of_people(self, task: str) -> None:
        """With more sentences for the model, only those that the model already has are drawn again."""
        few = sentences(task)
        params = {"task": task, "count": 120, "model_count": 2400, "seed": 0}
        many = open_sentences(Component("sentences", params), Path())
        assert many.items("people") == few.items("people")
        theirs = set(texts_of(many, "model"))
        pairs = zip(texts_of(few, "people"), texts_of(many, "people"), strict=True)
        redrawn = {sentence for sentence, other in pairs if sentence != other}
        assert len(redrawn) < 12 and all(sentence in theirs for sentence in redrawn)

    def test_it_looks_like_a_sentence(self, task: str) -> None:
        for text in texts_of(sentences(task), "people"):
            assert re.fullmatch(r"[A-Z][a-z]*(,? [a-z]+)*\.", text), text

    def test_it_depends_on_the_seed_alone(self, task: str) -> None:
        params = {"task": task, "count": 120, "model_count": 600, "seed": 0}
        again = open_sentences(Component("sentences", params), Path())
        assert again.content_digest() == sentences(task).content_digest()
        assert sentences(task, seed=1).content_digest() != again.content_digest()

    def test_it_writes_the_same_sentence_however_many_there_are(self, task: str) -> None:
        params = {"task": task, "count": 60, "model_count": 600}
        fewer = open_sentences(Component("sentences", params), Path())
        more = open_sentences(Component("sentences", {**params, "model_count": 1200}), Path())
        assert texts_of(fewer, "people") == texts_of(more, "people")


def test_it_marks_what_carries_the_answer() -> None:
    for task, both in (("tense", False), ("subject_number", False), ("sentiment", True)):
        dataset = sentences(task)
        for item in dataset.items("people"):
            text, cues = dataset.text(item.key), dataset.cues(item.key)
            marked = [text[start:end].lower() for start, end in cues]
            assert marked and all(re.fullmatch("[a-z]+", word) for word in marked)
            assert both or len(marked) == 1
            if task == "tense":
                assert marked[0].endswith("ed") == (item.truth == "past")
            elif task == "subject_number":
                assert marked[0].endswith("s") == (item.truth == "plural")
            else:
                side = PRAISE if item.truth == "positive" else BLAME
                other = BLAME if item.truth == "positive" else PRAISE
                assert set(marked) <= set(side)
                assert len(set(words_of(text)) & set(other)) < len(marked)


@pytest.mark.parametrize("task", ["tense", "subject_number"])
def test_it_shares_no_carrying_word_between_the_sides(task: str) -> None:
    dataset = sentences(task)
    stems: dict[str, set[str]] = {}
    for split in ("model", "people"):
        marked = [
            dataset.text(item.key)[start:end].lower()
            for item in dataset.items(split)
            for start, end in dataset.cues(item.key)
        ]
        assert len(set(marked)) > 20
        stems[split] = {re.sub("(ied|ies|ed|es|s|d|y|e)$", "", word) for word in marked}
    assert not stems["model"] & stems["people"]


@pytest.mark.parametrize(("task", "ending"), [("tense", "ed"), ("subject_number", "s")])
def test_it_cannot_be_solved_by_looking_for_an_ending_anywhere(task: str, ending: str) -> None:
    """Other verbs and nouns have tense and number of their own: the best cut of "how many words end so" is
    far from right.
    """
    dataset = sentences(task)
    items = dataset.items("model")
    counts = np.array(
        [
            sum(
                word.endswith(ending) and word not in DETERMINERS for word in words_of(dataset.text(item.key))
            )
            for item in items
        ]
    )
    is_first = np.array([item.truth == dataset.labels[task == "subject_number"] for item in items])
    best = max(float(np.mean((counts >= cut) == is_first)) for cut in range(1, 9))
    assert best < (0.85 if task == "tense" else 0.7)


def test_it_has_as_many_words_as_the_bin_says() -> None:
    dataset = sentences("sentence_length")
    assert BINS == ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))
    seen = set()
    for split in ("model", "people"):
        for item in dataset.items(split):
            low, high = BINS[dataset.labels.index(item.truth)]
            count = len(words_of(dataset.text(item.key)))
            assert low <= count <= high
            seen.add(count)
    assert seen == set(range(5, 29))


def test_it_refuses_unknown_tasks_and_items() -> None:
    with pytest.raises(BadSpec, match="parameter 'task' is 'mood', but must be one of "):
        open_sentences(Component("sentences", {"task": "mood"}), Path())
    with pytest.raises(BadSpec, match='no item "people-99999"'):
        sentences("tense").text("people-99999")

"""PASTA's records: a round trip to the byte, names as the paper has them, and one sentence for each fault."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.exports.base import ExportError
from analysis.exports.pasta_ratings import INDEX, RECORDS, write
from analysis.frames import Frames
from analysis.pasta_records import (
    MAX_BYTES,
    QUESTIONS,
    BadRecords,
    Record,
    as_text,
    ratings_from,
    read_records,
    records_from,
    records_of,
    table_of,
)
from tests.analysis.rated import SIX, all_rated, pictures_of, rated, rating_frames, sitting_row
from tests.oracles import pasta

pytestmark = pytest.mark.pure
ANSWER = {f"Q{at}": at if at < 6 else 1 for at in range(1, 7)}
RECORD = {
    "img": "coco_75_dog.png",
    "explication": "coco_75_12.npy",
    "GTclass": "dog",
    "predictedclass": "cat",
    "Annotation": [ANSWER, ANSWER | {"Q1": 5}],
}


def saved(folder: Path, value: Any) -> Path:
    path = folder / "records.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def six(rater: int, item: int, name: str, question: str) -> int:
    return 1 + (rater + 2 * item + len(name) + int(question[1])) % 5


def exported(frames: Frames, folder: Path) -> str:
    folder.mkdir()
    write(frames, folder)
    return (folder / RECORDS).read_text()


def test_a_file_is_a_table_of_single_answers(tmp_path: Path) -> None:
    table = ratings_from(saved(tmp_path, [RECORD, RECORD | {"explication": "by hand"}]))
    assert len(table) == 2 * 2 * 6
    first = table.iloc[0]
    assert (first["dataset"], first["image"], first["explainer"]) == ("coco", 75, 12)
    assert (first["GTclass"], first["predictedclass"], first["question"], first["value"]) == (
        "dog",
        "cat",
        "Q1",
        1,
    )
    assert table.loc[table["rater"] == 1, "value"].tolist()[:2] == [5, 2]
    other = table[table["explanation"] == 1]
    assert other["dataset"].unique().tolist() == [""] and other["image"].isna().all()


def test_it_comes_back_to_the_byte(tmp_path: Path) -> None:
    """Export, import, table, records, text: the same file; and what was exported says what was answered."""
    frames = all_rated(six, raters=3, items=2, names=("grad_cam", "random"))
    text = exported(frames, tmp_path / "out")
    records = read_records(tmp_path / "out" / RECORDS)
    assert as_text(records) == as_text(records_from(table_of(records))) == text
    table = table_of(records)
    for _, row in table.iterrows():
        item, name = int(row["image"]), ("grad_cam", "random")[int(row["explainer"])]
        assert row["value"] == six(int(row["rater"]), item, name, str(row["question"]).lower())
    assert records[0].img == "how-clear_0_wolf.png" and records[0].explication == "how-clear_0_0.png"
    assert (records[0].truth, records[0].predicted) == ("wolf", "husky")
    # Six questions of every explanation by every rater.
    assert len(table) == 6 * (2 * 2) * 3


def test_a_foreign_file_comes_back_to_the_byte(tmp_path: Path) -> None:
    pairs = {
        f"{what}_{aim}": f"{what}_{aim}.png" for aim in ("light", "strong") for what in ("img", "explication")
    }
    text = as_text(records_of([RECORD, RECORD | pairs | {"Annotation": [ANSWER | {"Q5": None}]}]))
    path = tmp_path / "records.json"
    path.write_text(text, encoding="utf-8")
    assert as_text(read_records(path)) == as_text(records_from(ratings_from(path))) == text
    assert ratings_from(path)["value"].isna().sum() == 1
    assert as_text(()) == "[]\n" and records_of([]) == () and ratings_from(saved(tmp_path, [])).empty


def test_copies_are_named_and_explained_by_the_index(tmp_path: Path) -> None:
    frames = all_rated(six, raters=2, items=1, names=("grad_cam",))
    copy = {"item": "light~1", "copy_of": "i0", "perturbation": '{"aim": "light"}', "stimulus_key": "k"}
    pictures = frames.stimuli.iloc[[0, 0]].reset_index(drop=True).assign(copy_of="", perturbation="")
    for key, value in copy.items():
        pictures.loc[1, key] = value
    write(Frames(frames.trials, frames.participants, pictures, frames.extra), tmp_path)
    (record,) = read_records(tmp_path / RECORDS)
    assert record.copies == {
        "img_light": "how-clear_0_0_light_image.png",
        "explication_light": "how-clear_0_0_light.png",
    }
    index = pd.read_csv(tmp_path / INDEX, keep_default_na=False)
    assert index["item"].tolist() == ["i0", "light~1"] and index["copy_of"].tolist() == ["", "i0"]


def test_names_tell_dataset_item_and_method_apart(tmp_path: Path) -> None:
    """Two datasets, two methods: four names of explanations and two of pictures, and each is in the index."""
    names = ("grad_cam", "random")
    trials = [
        rated("s", "p", 2 * i + n, (f"i{i}", name), dict.fromkeys(SIX, 1 + i + n))
        for i in range(2)
        for n, name in enumerate(names)
    ]
    pictures = [
        row | {"dataset": "coco" if row["item"] == "i0" else "monu ment_AI"} for row in pictures_of(2, names)
    ]
    write(rating_frames(trials, [sitting_row("s", "p", 0)], pictures), tmp_path)
    table = ratings_from(tmp_path / RECORDS)
    told = table[table["question"] == "Q1"][["dataset", "image", "explainer", "value"]]
    assert sorted(map(tuple, told.to_numpy().tolist())) == [
        ("coco", 0, 0, 1),
        ("coco", 0, 1, 2),
        ("monu-ment-AI", 1, 0, 2),
        ("monu-ment-AI", 1, 1, 3),
    ]
    assert set(table["img"]) == {"coco_0_wolf.png", "monu-ment-AI_1_wolf.png"}
    index = pd.read_csv(tmp_path / INDEX, keep_default_na=False)
    assert set(index["explication"]) == set(table["explication"])
    where = {row["explication"]: (row["item"], row["condition"]) for _, row in index.iterrows()}
    assert where["monu-ment-AI_1_1.png"] == ("i1", "random")


def test_a_question_without_a_copy_is_null_and_anchors_stay_out(tmp_path: Path) -> None:
    four = {name: 4 for name in SIX if name != "q5"}
    trials = [
        rated("s", "p", 0, ("i0", "grad_cam"), four),
        rated("s", "p", 1, ("i1", "grad_cam"), dict.fromkeys(SIX, 2), anchor=True),
    ]
    frames = rating_frames(trials, [sitting_row("s", "p", 0)], pictures_of(2, ("grad_cam",)))
    write(frames, tmp_path)
    (record,) = read_records(tmp_path / RECORDS)
    assert dict(record.answers[0]) == dict.fromkeys(QUESTIONS, 4) | {"Q5": None}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (("q1",), 'questions = "split"'),
        ((*SIX, "beauty"), "The study asks beauty"),
    ],
)
def test_what_a_record_cannot_hold_is_refused(tmp_path: Path, asked: tuple[str, ...], sentence: str) -> None:
    frames = all_rated(lambda *_: 3, raters=2, items=1, names=("grad_cam",), asked=asked)
    with pytest.raises(ExportError, match=sentence):
        write(frames, tmp_path)


def test_no_ratings_and_two_origins_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no ratings"):
        write(rating_frames([], []), tmp_path)
    frames = all_rated(six, raters=2, items=1)
    people = frames.participants.copy()
    people.loc[0, "origin"] = "simulated"
    with pytest.raises(ExportError, match="--origin human"):
        write(Frames(frames.trials, people, frames.stimuli, frames.extra), tmp_path)


def without(question: str) -> dict[str, int]:
    return {key: value for key, value in ANSWER.items() if key != question}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"img": "x"}, r"an object of 1, not a list"),
        ([3], r"record 0 is 3, not an object"),
        ([RECORD, RECORD | {"img": ""}], r'record 1: img is ""; give a text'),
        ([RECORD | {"GTclass": None}], r"record 0: GTclass is null"),
        ([RECORD | {"Rater": 1}], r"record 0 has the key 'Rater', which the format lacks"),
        ([RECORD | {"Annotation": []}], r"record 0: Annotation is a list without entries"),
        ([RECORD | {"Annotation": {"Q1": 1}}], r"Annotation is an object of 1"),
        ([RECORD | {"Annotation": [7]}], r"record 0, annotation 0 is 7, not an object"),
        ([RECORD | {"Annotation": [ANSWER, without("Q3")]}], r"record 0, annotation 1: Q3 is missing"),
        (
            [RECORD | {"Annotation": [ANSWER | {"Q2": 6}]}],
            r"annotation 0: Q2 is 6; give a whole number from 1 to 5",
        ),
        ([RECORD | {"Annotation": [ANSWER | {"Q2": 0}]}], r"Q2 is 0;"),
        ([RECORD | {"Annotation": [ANSWER | {"Q2": 2.5}]}], r"Q2 is 2.5;"),
        ([RECORD | {"Annotation": [ANSWER | {"Q2": True}]}], r"Q2 is true;"),
        ([RECORD | {"Annotation": [ANSWER | {"Q2": "4"}]}], r'Q2 is "4";'),
        ([RECORD | {"Annotation": [ANSWER | {"Q2": None}]}], r"Q2 is null;"),
        ([RECORD | {"Annotation": [ANSWER | {"Q7": 2}]}], r"has the key 'Q7'; give Q1 to Q6"),
        ([RECORD | {"img": "\ud800.png"}], r'record 0: img is "\\ud800.png", with half a character'),
    ],
)
def test_a_fault_is_named_by_record_key_and_value(tmp_path: Path, value: Any, sentence: str) -> None:
    with pytest.raises(BadRecords, match=sentence):
        ratings_from(saved(tmp_path, value))


def test_what_is_no_file_of_records_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text("[1, 2")
    with pytest.raises(BadRecords, match="is no JSON"):
        read_records(path)
    path.write_text("[" * 100_000)
    with pytest.raises(BadRecords, match="is no JSON"):
        read_records(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadRecords, match="is no JSON"):
        read_records(path)
    with path.open("wb") as handle:
        handle.truncate(MAX_BYTES + 1)
    with pytest.raises(BadRecords, match="the limit is 20,971,520"):
        read_records(path)
    with pytest.raises(BadRecords, match="cannot be read"):
        read_records(tmp_path / "none.json")


def test_a_key_that_stands_twice_is_refused_and_no_value_lost(tmp_path: Path) -> None:
    path = saved(tmp_path, [RECORD])
    path.write_text(path.read_text().replace('"Q2": 2', '"Q2": 2, "Q2": 4', 1))
    with pytest.raises(BadRecords, match="records.json: an object has the key 'Q2' twice, 2 and 4; keep one"):
        read_records(path)


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    path = saved(tmp_path, [RECORD])
    plain = read_records(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_records(path) == plain and len(plain) == 1


def test_a_file_of_the_published_size_is_read_whole(tmp_path: Path) -> None:
    """21,100 explanations, five raters, six questions: 633,000 answers; Q1 has the published mean."""
    low, extra = divmod(
        round(pasta.MEAN * pasta.EXPLANATIONS * pasta.RATERS), pasta.EXPLANATIONS * pasta.RATERS
    )
    answers = iter(range(pasta.EXPLANATIONS * pasta.RATERS))
    records = [
        Record(
            f"coco_{at % 1000}_dog.png",
            f"coco_{at % 1000}_{at // 1000}.npy",
            "dog",
            "dog",
            tuple(ANSWER | {"Q1": low + (next(answers) < extra)} for _ in range(pasta.RATERS)),
        )
        for at in range(pasta.EXPLANATIONS)
    ]
    path = tmp_path / "records.json"
    path.write_text(as_text(records), encoding="utf-8")
    table = ratings_from(path)
    assert len(table) == pasta.RATINGS
    assert table.loc[table["question"] == "Q1", "value"].mean() == pytest.approx(pasta.MEAN, abs=1e-12)

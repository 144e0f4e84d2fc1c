"""Stand-ins with the quirks of published corpora, which docs/own-texts.md names; all sentences are ours.

The quirks were counted in SST (sentiment-train, -dev, -test of PrincetonML/SIF, October 2017), in HatEval
2019 (train, dev and test as .tsv, English and Spanish, of cicl2018/HateEvalTeam, April 2019), and in the
README of SentEval's probing tasks (facebookresearch/SentEval, 2018).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from stimuli.datasets import DECODING
from stimuli.datasets.lines import LinesDataset, open_lines
from stimuli.errors import BadSpec
from stimuli.spec import Component
from tests.services import ROOT

pytestmark = pytest.mark.pure
ROWS: dict[str, dict[str, Any]] = {
    name.split(",")[0]: tomllib.loads(f"dataset = {table}")["dataset"]
    for name, table in re.findall(
        r"^\| ([^|]+) \| `(\{ name = \"lines\".*\})` \|$", (ROOT / "docs" / "own-texts.md").read_text(), re.M
    )
}


def opened(row: str, folder: Path, **files: str) -> LinesDataset:
    """The dataset of a row of the page's table, on these contents of `path` and `people_path`."""
    params = {key: value for key, value in ROWS[row].items() if key != "name"}
    for key, content in files.items():
        (folder / params[key]).write_bytes(content.encode())
    return open_lines(Component("lines", params), folder, DECODING)


def test_sst_as_senteval_has_it(tmp_path: Path) -> None:
    """No names of columns and no ending; a space before each tab; phrases of the training sentences, of which
    five have both labels; two test sentences that are training phrases.
    """
    train = "warm and wise \t1\na film \t1\nA film \t0\nit drags \t0\n`` so '' it goes , -lrb- on -rrb- \t0\n"
    test = "it drags on and on . \t0\nIt  drags \t0\n`` wise '' , warm \t1\nWarm and wise \t1\nno \t0\n"
    dataset = opened("SST", tmp_path, path=train, people_path=test)
    assert dataset.labels == ("negative", "positive")
    assert [dataset.text(item.key) for item in dataset.items("people")] == [
        "it drags on and on .",
        "`` wise '' , warm",
        "no",
    ]
    assert [item.key for item in dataset.items("model")] == ["line-000001", "line-000004", "line-000005"]
    assert dataset.told == (
        "2 of 5 texts of people are the model's too, but for case and spaces, and were left out (lines 2 of "
        "sentiment-test, 4 of sentiment-test)",
        "2 of 10 texts have two labels, but for case and spaces, and were left out (lines 2, 3)",
    )


def test_sst_2_of_glue(tmp_path: Path) -> None:
    train = "sentence\tlabel\nwarm and wise \t1\nit drags \t0\n"
    dev = "sentence\tlabel\nno . \t0\na fine film . \t1\n"
    dataset = opened("SST-2 of GLUE (train.tsv", tmp_path, path=train, people_path=dev)
    assert [(dataset.text(item.key), item.truth) for item in dataset.all_items] == [
        ("warm and wise", "positive"),
        ("it drags", "negative"),
        ("no .", "negative"),
        ("a fine film .", "positive"),
    ]


def test_senteval_s_probing_tasks(tmp_path: Path) -> None:
    """Sides in any order, classes in capitals, quotation marks of Penn treebank and straight ones."""
    rows = ["te\tPAST\tIt rained .", 'tr\tPRES\t" Come , " he says .', "va\tPAST\t`` No '' , she said ."]
    rows += ["tr\tPAST\tWe left early .", "te\tPRES\tIt rains on the 3' wall .", "va\tPRES\tWe stay ."]
    dataset = opened("SentEval's probing tasks", tmp_path, path="\n".join(rows))
    assert dataset.labels == ("PAST", "PRES") and dataset.told == ()
    assert [dataset.text(item.key) for item in dataset.items("people")] == [
        "It rained .",
        "It rains on the 3' wall .",
    ]
    assert len(dataset.items("model")) == 4


HEAD = "id\ttext\tHS\tTR\tAG\n"


def test_hateval_in_english(tmp_path: Path) -> None:
    """Commas and line breaks in quotes; two texts of people among the model's, one with another label."""
    train = 'id,text,HS,TR,AG\r\n201,"Hello @user, you",0,0,0\r\n202,rough talk https://t.co/x,1,1,0\r\n'
    train += '203,"so ""kind""\nof you",0,0,0\r\n204,Get out,1,0,1\r\n'
    test = "id,text,HS,TR,AG\r\n34243,HELLO @user,0,0,0\r\n34244,Rough talk https://t.co/x,1,1,0\r\n"
    test += "34245,get out,0,0,0\r\n34246,mild \U0001f600,0,0,0\r\n34247,wild,1,1,1\r\n"
    dataset = opened("HatEval 2019", tmp_path, path=train, people_path=test)
    assert dataset.labels == ("neutral", "hateful")
    assert [dataset.text(item.key) for item in dataset.items("people")] == [
        "HELLO @user",
        "mild \U0001f600",
        "wild",
    ]
    assert [dataset.text(item.key) for item in dataset.items("model")][-1] == 'so "kind"\nof you'
    assert [note.partition(" (")[0] for note in dataset.told] == [
        "2 of 5 texts of people are the model's too, but for case and spaces, and were left out",
        "1 of 4 texts of the model have another label among people's and were left out too",
        "1 of 9 rows go on over several lines, within quotation marks",
    ]


def test_hateval_in_spanish_as_tables_with_tabs(tmp_path: Path) -> None:
    """Single quotation marks, marks of zero width, and what is left of quotation marks that were decoded
    twice (in English: 135 characters in 87 of 10,000 texts).
    """
    train = HEAD + '20001\t"Así va\t0\t0\t0\n20002\t¿don\u00e2\x80\x99t \x9dtú\x81?\t1\t0\t1\n'
    dev = HEAD + "24501\ta\u200bb amable\t0\t0\t0\n24502\t\x93mal\x94 \U0001f600\t1\t1\t1\n"
    dataset = opened("HatEval 2019 in Spanish", tmp_path, path=train, people_path=dev)
    assert [(dataset.text(item.key), item.truth) for item in dataset.all_items] == [
        ('"Así va', "neutral"),
        ("¿don\u00e2  t  tú ?", "hateful"),
        ("a\u200bb amable", "neutral"),
        ("mal  \U0001f600", "hateful"),
    ]
    assert dataset.told == (
        "6 control characters between U+0080 and U+009F in 2 of 4 texts were read as "
        "spaces (lines 3, 3 of dev_es.tsv)",
    )


def test_the_test_file_of_hateval_without_labels_is_named(tmp_path: Path) -> None:
    train = HEAD + "1\tuno\t0\t0\t0\n2\tdos\t1\t0\t0\n"
    with pytest.raises(
        BadSpec, match='"dev_es.tsv", line 1 names the columns id, text; text and HS are needed'
    ):
        opened("HatEval 2019 in Spanish", tmp_path, path=train, people_path="id\ttext\n3\ttres\n")

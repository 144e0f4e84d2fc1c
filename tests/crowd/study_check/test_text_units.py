"""`study_check` counts texts that the model reads in part, and those with too little to mark."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from crowd.study_check.item_export import list_items
from crowd.study_check.stimulus_quality import look_at, stimulus_quality
from crowd.study_check.text_units import TextLength, TextLengths, text_lengths
from experiments.definition.study import StudyDefinition
from experiments.drafting.declared_units import check_units
from experiments.drafting.draft import build_draft, gather
from experiments.drafting.explanation_look_alikes import by_view, groups_alike
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.stimulus_specs import specs_of
from experiments.errors import StudyError
from experiments.models import Item, Study
from experiments.study_files.load import load_study
from stimuli.explainers.recorded.base import ItemView
from stimuli.explainers.recorded.tables import token_spans
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.store.files import read_attribution, read_text, read_units
from stimuli.store.media_access import current_store
from stimuli.types import TokenAttribution, silent
from tests.experiments.protocols import SENTENCES, TURING, write

THINGS = ["灯", "水壶", "椅子", "钟表", "镜子", "地毯", "花瓶", "书架"]
ASKED = {
    "refund": [
        "请退还{}的钱",
        "我要退回{}的钱",
        "{}的钱收了两次",
    ],
    "delivery": [
        "{}什么时候送到",
        "我的{}还没有到",
        "请再送一次{}",
    ],
}
"""Letters to a shop in Chinese: no spaces between words."""


def letters(between: str = "") -> str:
    """The corpus; with `between`, that stands between all characters."""
    rows = [
        f"{'te' if at % 2 else 'tr'}\t{label}\t{between.join(sentence.format(thing))}"
        for label, sentences in ASKED.items()
        for sentence in sentences
        for at, thing in enumerate(THINGS)
    ]
    return "\n".join(rows)


CONDITIONS = """
[[conditions]]
name = "lime"
role = "method"
explainer = { name = "lime_text", samples = 60 }
[[conditions]]
name = "control"
role = "control"
explainer = { name = "random_text", parameters = '{"samples": 60}' }
"""


def gathered_of(
    folder: Path, content: str, predictor: str = "", units: str = ""
) -> tuple[StudyDefinition, MaterialSet]:
    sources = f"""dataset = {{ name = "lines", path = "letters.txt" }}
predictor = {{ name = "trained_text", pooling = "mean", epochs = 2{predictor} }}
classes = ["refund", "delivery"]
{units}"""
    head = TURING.split("[[conditions]]", 2)
    tables = "[[conditions]]".join(head[:2]) + CONDITIONS
    path = write(folder, "letters", "reverse_turing", tables, sources=sources)
    (folder / "letters.txt").write_text(content, encoding="utf-8")
    definition = load_study(path)
    return definition, gather(definition, folder, current_store(), silent)


def same_of(definition: StudyDefinition, gathered: MaterialSet) -> dict[str, tuple[str, ...]]:
    store = current_store()
    looked = look_at(definition, gathered, store, 8, silent)
    measured = stimulus_quality(definition, gathered, store, looked)
    return {quality.condition: quality.same for quality in measured}


@pytest.mark.django_db
def test_texts_of_one_unit_are_named_and_their_control_is_found_to_equal_its_method(
    tmp_path: Path, store_folder: Path
) -> None:
    definition, gathered = gathered_of(tmp_path, letters())
    lengths = text_lengths(definition, gathered, current_store())
    assert {text.units for text in lengths.texts} == {1} and len(lengths.texts) == 8
    (warning,) = lengths.warnings
    assert warning.startswith("8 of 8 texts have one unit to be marked or none (line-0000")
    marked = {key for keys in same_of(definition, gathered).values() for key in keys}
    assert marked and marked <= {text.item for text in lengths.texts}
    sets = by_view(specs_of(definition, gathered))
    groups = groups_alike(list(sets.values())[:3], current_store(), silent)
    assert all(group == [("lime", "control")] for group in groups)


@pytest.mark.django_db
def test_the_same_texts_with_spaces_are_not_accused(tmp_path: Path, store_folder: Path) -> None:
    definition, gathered = gathered_of(tmp_path, letters(" "))
    lengths = text_lengths(definition, gathered, current_store())
    assert not list(lengths.warnings) and min(text.units for text in lengths.texts) >= 6
    (line,) = lengths.lines
    assert line.startswith(f"{sum(text.units < 9 for text in lengths.texts)} of 8 texts have fewer")
    assert same_of(definition, gathered)["lime"] == ()


@pytest.mark.django_db
def test_texts_that_the_model_reads_in_part_are_named(tmp_path: Path, store_folder: Path) -> None:
    """Six characters of each are read: two of the eight tokens mark its start and end."""
    definition, gathered = gathered_of(tmp_path, letters(" "), ", max_tokens = 8")
    lengths = text_lengths(definition, gathered, current_store())
    assert {text.unread for text in lengths.texts} == {text.units - 6 for text in lengths.texts}
    (warning,) = lengths.warnings
    cut = [text for text in lengths.texts if text.units > 6]
    assert f"{len(cut)} of 8 texts are longer than what the model reads, by up to " in warning
    assert ", ".join(text.item for text in cut[:3]) in warning


@pytest.mark.pure
def test_each_count_is_told_with_the_first_three() -> None:
    many = tuple(
        TextLength(f"line-{at}", units, unread)
        for at, (units, unread) in enumerate(
            [(1, 0), (0, 0), (2, 0), (8, 0), (9, 0), (40, 3), (40, 0), (40, 12), (1, 0), (1, 0)]
        )
    )
    lengths = TextLengths(many, marks=3)
    cut, single = lengths.warnings
    assert cut.startswith(
        "2 of 10 texts are longer than what the model reads, by up to 12 tokens (line-5, line-7): people read"
    )
    assert single.startswith(
        "4 of 10 texts have one unit to be marked or none (line-0, line-1, line-8 and 1 more)"
    )
    assert list(lengths.lines) == [
        "2 of 10 texts have fewer than 9 units to be marked, 3 times the 3 marks (line-2, line-3): random "
        "marks often fall on those of a method."
    ]
    assert list(replace(lengths, marks=0).lines) == list(TextLengths().lines) == []
    assert list(replace(lengths, marks=0, by="tokens").lines) == [
        "Units of texts: tokens; 0 to 40 in a text."
    ]


@pytest.mark.django_db
def test_a_new_study_of_texts_without_spaces_declares_its_units(tmp_path: Path, store_folder: Path) -> None:
    definition, gathered = gathered_of(tmp_path, letters())
    with pytest.raises(StudyError) as refused:
        build_draft(definition, tmp_path, silent)
    assert str(refused.value) == (
        "letters: 24 of 24 texts have no spaces between words (line-000002, line-000004, line-000006 and 21 "
        "more), so that methods would take a whole sentence for a word: set [stimuli] units = "
        '"words" (cut by the dictionaries of ICU), "characters" or "tokens" (of the model), with the '
        'predictor trained_text its pieces = "letters" too; or units = "legacy" to mark what stands between '
        "spaces all the same."
    )
    assert not Study.objects.exists()
    check_units(*gathered_of(tmp_path / "spaced", letters(" ")))
    check_units(*gathered_of(tmp_path / "legacy", letters(), units='units = "legacy"'))
    digest = definition.digest
    Study.objects.create(
        slug="letters", title="t", paradigm="reverse_turing", definition={}, digest=digest, seed=3
    )
    with pytest.raises(StudyError):
        check_units(definition, gathered)
    Study.objects.update(state=Study.State.OPEN)
    check_units(definition, gathered)


@pytest.mark.django_db
@pytest.mark.parametrize("units", ["words", "characters", "tokens"])
def test_what_the_refusal_names_gives_each_text_units_and_a_control_of_its_own(
    units: str, tmp_path: Path, store_folder: Path
) -> None:
    definition, gathered = gathered_of(tmp_path, letters(), ', pieces = "letters"', f'units = "{units}"')
    check_units(definition, gathered)
    lengths = text_lengths(definition, gathered, current_store())
    assert not list(lengths.warnings) and min(text.units for text in lengths.texts) >= 3
    if units != "words":
        of = {item.key: item.image_key for views in gathered.views.values() for item in views.values()}
        texts = {key: read_text(current_store(), name) for key, name in of.items()}
        assert all(text.units == len(texts[text.item]) for text in lengths.texts), "each of its characters"
    assert build_draft(definition, tmp_path, silent).definition["stimuli"]["units"] == units


@pytest.mark.pure
def test_units_are_part_of_a_study_s_digest_unless_they_are_absent(tmp_path: Path) -> None:
    path = write(tmp_path, "turing", "reverse_turing", TURING, sources=SENTENCES)
    plain = load_study(path)
    assert "units" not in plain.as_met()["stimuli"]
    path.write_text(path.read_text().replace("[stimuli]", '[stimuli]\nunits = "words"'))
    assert load_study(path).digest != plain.digest


@pytest.mark.django_db
def test_units_are_written_beside_the_items_and_spans_that_are_cut_at_them_are_read(
    tmp_path: Path, store_folder: Path
) -> None:
    definition, gathered = gathered_of(tmp_path, letters(), ', pieces = "letters"', 'units = "words"')
    list_items(definition, tmp_path, current_store(), tmp_path / "items", silent)
    lengths = {text.item: text.units for text in text_lengths(definition, gathered, current_store()).texts}
    with (tmp_path / "items" / "items.csv").open(newline="", encoding="utf-8") as stream:
        rows = {row["item"]: row["file"] for row in csv.DictReader(stream)}
    assert rows.keys() == lengths.keys()
    recorded = {}
    for key, file in rows.items():
        text = (tmp_path / "items" / file).read_text("utf-8")
        units = json.loads((tmp_path / "items" / file.replace(".txt", ".units.json")).read_text())
        assert len(units) == lengths[key] and all(text[start:end].strip() for start, end in units)
        whole = {"start": 0, "end": len(text), "weight": 1.0}
        cut = [{"start": start, "end": end, "weight": 1.0} for start, end in units]
        view = ItemView(text=text, units=tuple((start, end) for start, end in units))
        recorded[key] = (whole, cut, view)
    (tmp_path / "spans.json").write_text(json.dumps({key: cut for key, (_, cut, _) in recorded.items()}))
    for key, reader in token_spans(tmp_path / "spans.json").items():
        assert reader(recorded[key][2]) is not None
    (tmp_path / "whole.json").write_text(json.dumps({key: [whole] for key, (whole, *_) in recorded.items()}))
    for key, reader in token_spans(tmp_path / "whole.json").items():
        (_, cut, view), made = recorded[key], reader(recorded[key][2])
        assert isinstance(made, TokenAttribution) and view.units is not None
        assert made.spans == ((view.units[0][0], view.units[-1][1]),) and made.values.tolist() == [1.0]


RECORDED = """
[[conditions]]
name = "elsewhere"
role = "method"
explainer = { name = "recorded", path = "spans.json" }
"""


def rendered(definition: StudyDefinition, gathered: MaterialSet) -> dict[tuple[str, str], TokenAttribution]:
    """The explanation of each item under each condition that has one."""
    specs = {place: spec for place, spec in specs_of(definition, gathered).items() if spec.explainer}
    done = attempt(list(specs.values()), Bench(current_store()))
    assert all(isinstance(made, RenderedStimulus) for made in done), done
    made = {place: read_attribution(current_store(), spec.attribution_key) for place, spec in specs.items()}
    return {place: each for place, each in made.items() if isinstance(each, TokenAttribution)}


@pytest.mark.django_db
def test_spans_over_several_units_join_them_under_all_conditions(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Methods, their control and what was made elsewhere mark the same units of a text: those of before, but
    for the first two, which one span covers in every second text. Sums are kept; other keys stay."""
    asked = (letters(), ', pieces = "letters"', 'units = "words"')
    before_of, before = gathered_of(tmp_path, *asked)
    store, spans, sums = current_store(), {}, {}
    chosen = sorted(item.key for items in before.material.chosen.values() for item in items)
    views = {key: view for of_source in before.views.values() for key, view in of_source.items()}
    cut = {key: read_units(store, views[key].image_key) or () for key in chosen}
    for at, key in enumerate(chosen):
        edges = list(cut[key]) if at % 2 else [(cut[key][0][0], cut[key][1][1]), *cut[key][2:]]
        spans[key] = [{"start": s, "end": e, "weight": n + 0.25} for n, (s, e) in enumerate(edges)]
        sums[key] = sum(span["weight"] for span in spans[key])
    (tmp_path / "spans.json").write_text(json.dumps(spans))
    monkeypatch.setattr(sys.modules[__name__], "CONDITIONS", CONDITIONS + RECORDED)
    definition, gathered = gathered_of(tmp_path, *asked)
    assert sorted(item.key for items in gathered.material.chosen.values() for item in items) == chosen
    specs, old = specs_of(definition, gathered), specs_of(before_of, before)
    made = rendered(definition, gathered)
    for at, key in enumerate(chosen):
        of_item = {name: each for (item, name), each in made.items() if item == key}
        assert of_item.keys() == {"lime", "control", "elsewhere"}
        wanted = cut[key] if at % 2 else ((cut[key][0][0], cut[key][1][1]), *cut[key][2:])
        assert {each.spans for each in of_item.values()} == {wanted}
        assert of_item["elsewhere"].values.sum() == sums[key] and not of_item["elsewhere"].checks["left_out"]
        shades = [sorted(of_item[name].values.tolist()) for name in ("lime", "control")]
        assert shades[0] == shades[1]
        keys = {spec.image_key for (item, _), spec in specs.items() if item == key}
        assert (keys == {views[key].image_key}) == bool(at % 2) and len(keys) == 1
        assert all((old[key, name] == specs[key, name]) == bool(at % 2) for name in ("lime", "control"))
    build_draft(definition, tmp_path, silent)
    assert dict(Item.objects.values_list("key", "image_key")) == {
        key: spec.image_key for (key, _), spec in specs.items()
    }


@pytest.mark.django_db
def test_legacy_units_are_never_joined_and_a_fault_of_a_span_is_told_by_itself(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_of, before = gathered_of(tmp_path, letters(" "))
    old = specs_of(before_of, before)
    spans = {key: [{"start": 0, "end": 3, "weight": 1}] for key, _ in old}
    (tmp_path / "spans.json").write_text(json.dumps(spans))
    monkeypatch.setattr(sys.modules[__name__], "CONDITIONS", CONDITIONS + RECORDED)
    specs = specs_of(*gathered_of(tmp_path, letters(" ")))
    assert old.items() <= specs.items()
    spans[next(iter(spans))][0]["end"] = 999
    (tmp_path / "spans.json").write_text(json.dumps(spans))
    with pytest.raises(StudyError, match=r"condition 'elsewhere': .* outside a text of \d+ characters"):
        gathered_of(tmp_path, letters(" "), units='units = "words"')

"""Units of texts: what is cut, what tokens join, what their weights add up to, and whose keys stay."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.study_files.load import find_study, load_study
from stimuli.datasets import open_dataset
from stimuli.errors import BadSpec
from stimuli.explainers.recorded.base import ItemView
from stimuli.explainers.recorded.tables import token_spans
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.planner.values import ExplainedNumber
from stimuli.predictors.text.base import TextPredictor
from stimuli.predictors.text.text_encoders import EmbeddedEncoder, Head, TextNetwork
from stimuli.predictors.text.trained_text import training_key
from stimuli.predictors.text.units import cut_text, cutter_name, join_units, lacks_spaces, letter_spans
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import PredictedItem, Source, prepare, spec_for, survey
from stimuli.store import LocalStore, Store
from stimuli.store.files import read_attribution, read_text, read_units
from stimuli.types import Span, TokenAttribution, Units
from tests.stimuli.material import DATASET, PREDICTOR, write_images
from tests.stimuli.text_toys import explained, subject_of, trained

pytestmark = pytest.mark.pure
CHINESE = "早上好，请退还台灯的钱"
THAI = "กรุณาคืนเงินค่าโคมไฟ"
ARABIC = "أعيدوا إليّ ثمن المصباح، من فضلكم"


def pieces(text: str, units: Units, tokens: tuple[Span, ...] = ()) -> list[str]:
    return [text[start:end] for start, end in cut_text(text, units, tokens).spans]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "The quick (“brown”) fox can’t jump 32.3 feet, right?",
            "The quick brown fox can’t jump 32.3 feet right",
        ),
        (CHINESE, "早上 好 请 退还 台灯 的 钱"),
        (THAI, "กรุณา คืน เงิน ค่า โคม ไฟ"),
        (ARABIC, "أعيدوا إليّ ثمن المصباح من فضلكم"),
        ("I am 😀 happy", "I am happy"),
        ("", ""),
    ],
)
def test_words_are_those_of_uax_29_and_of_the_dictionaries(text: str, words: str) -> None:
    """The first is the example of UAX #29, the second and third are read off a dictionary by hand."""
    assert pieces(text, "words") == words.split()


def test_characters_are_grapheme_clusters_with_letters_or_digits() -> None:
    assert pieces("cafe\u0301, 3 कि", "characters") == ["c", "a", "f", "e\u0301", "3", "कि"]
    assert pieces(CHINESE, "characters") == list(CHINESE.replace("，", ""))


def test_tokens_are_the_model_s_without_spaces_at_their_edges() -> None:
    """As GPT-2 cuts it: spaces before words, and four tokens for the bytes of one character."""
    tokens = ((0, 1), (1, 4), (4, 6), (5, 6), (5, 6), (5, 6), (6, 12), (12, 12), (12, 13))
    assert pieces("I am \U0001f600 happy ", "tokens", tokens) == ["I", "am", "\U0001f600", "happy"]


def test_a_token_over_the_edges_of_units_makes_them_one() -> None:
    words = [(0, 2), (2, 3), (4, 6), (7, 9), (9, 10)]
    assert join_units(words, [(0, 2), (2, 3), (4, 6)]) == tuple(words)
    assert join_units(words, [(1, 3)]) == ((0, 3), (4, 6), (7, 9), (9, 10))
    assert join_units(words, [(5, 8), (0, 1), (8, 10)]) == ((0, 2), (2, 3), (4, 10))
    assert join_units(words, [(3, 4), (6, 7), (10, 12)]) == tuple(words), "what lies between touches nothing"
    assert join_units([], [(0, 3)]) == ()


SPANS = (
    st.lists(st.integers(0, 40), unique=True)
    .map(sorted)
    .map(lambda at: list(zip(at[::2], at[1::2], strict=False)))
)


@given(SPANS, SPANS)
def test_after_joining_no_token_touches_two_units_and_nothing_is_lost(
    units: list[Span], tokens: list[Span]
) -> None:
    joined = join_units(units, tokens)
    covered = {at for start, end in joined for at in range(start, end)}
    assert covered >= {at for start, end in units for at in range(start, end)}
    assert all(before[1] <= after[0] for before, after in zip(joined, joined[1:], strict=False))
    for start, end in tokens:
        assert sum(start < stop and begin < end for begin, stop in joined) <= 1
    starts, ends = {start for start, _ in units}, {end for _, end in units}
    assert all(start in starts and end in ends for start, end in joined)


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        (CHINESE, True),
        ("我爱你", True),
        (THAI, True),
        ("電気スタンドの代金を返してください", True),
        ("ສະບາຍດີທ່ານ", True),
        ("早上 好 请 退还 台灯 的 钱", False),
        ("กรุณา คืน เงิน ค่า โคม ไฟ", False),
        (ARABIC, False),
        ("전등 값을 돌려주세요", False),
        ("བོད་སྐད་ཤེས་ཀྱི་ཡོད།", False),
        ("I have studied at 北京大学 for several years", False),
        ("Please refund the lamp", False),
        ("", False),
    ],
)
def test_texts_without_spaces_between_words_are_found(text: str, lacks: bool) -> None:
    assert lacks_spaces(text) == lacks


def test_letters_are_pieces_where_no_spaces_divide_words() -> None:
    def cut(text: str) -> list[str]:
        return [text[start:end] for start, end in letter_spans(text)]

    assert cut("请退LED2灯，ok don't") == ["请", "退", "LED2", "灯", "，", "ok", "don", "'", "t"]
    assert cut("กรุณา") == ["ก", "รุ", "ณ", "า"]
    old, new = EmbeddedEncoder(0, 64), EmbeddedEncoder(0, 64, letters=True)
    assert len(old.tokens(CHINESE).spans) == 3 and len(new.tokens(CHINESE).spans) == len(CHINESE)
    assert old.tokenizer_digest() != new.tokenizer_digest()


def test_values_of_units_add_up_to_those_of_all_tokens() -> None:
    """Gradient times embedding: every token counts once, in its unit or in what is left out."""
    net = trained("tense", model_count=300, epochs=2)
    text = "The dogs, who barked, ran home!"
    for spans in (((0, 8), (10, 20)), ((4, 8),), ()):
        subject = _with_units(text, spans)
        made = explained(net, [subject], Component("input_gradient_text"))[0]
        traced = net.text_gradient(text, ExplainedNumber(1))
        products = (traced.gradients.astype(np.float64) * traced.embeddings).sum(1)
        assert made.spans == spans
        np.testing.assert_allclose(made.values.sum() + made.checks["left_out"], products.sum(), rtol=1e-5)
        for (start, end), value in zip(spans, made.values, strict=True):
            inside = [start <= begin and stop <= end for begin, stop in traced.spans]
            np.testing.assert_allclose(value, products[inside].sum(), rtol=1e-5)


@pytest.mark.parametrize("of", ["lime_text", "shap_text", "input_gradient_text"])
def test_methods_and_their_control_mark_the_same_units_with_the_same_values(of: str) -> None:
    net, text = trained("tense", model_count=300, epochs=2), "The dogs ran home and slept"
    subject = _with_units(text, ((0, 8), (9, 12), (13, 17), (18, 27)))
    made = explained(net, [subject], Component(of))[0]
    control = explained(net, [subject], Component("random_text", {"of": of}))[0]
    assert made.spans == control.spans == subject.units
    assert sorted(made.values.tolist()) == sorted(control.values.tolist())
    if of == "shap_text":
        assert made.checks["efficiency_gap"] < 1e-9


def _with_units(text: str, spans: tuple[Span, ...]) -> Any:
    return replace(subject_of(text), units=spans)


def _read_spans(folder: Path, view: ItemView, rows: Sequence[tuple[int, int, float]]) -> TokenAttribution:
    spans = [{"start": start, "end": end, "weight": weight} for start, end, weight in rows]
    (folder / "spans.json").write_text(json.dumps({"a": spans}))
    made = token_spans(folder / "spans.json")["a"](view)
    assert isinstance(made, TokenAttribution)
    return made


def test_spans_made_elsewhere_are_added_up_by_unit_and_join_those_that_they_cover(tmp_path: Path) -> None:
    view = ItemView(text="unhappily we ran.", units=((0, 9), (10, 12), (13, 16)))

    def read(*rows: tuple[int, int, float]) -> TokenAttribution:
        return _read_spans(tmp_path, view, rows)

    made = read((0, 2, 0.5), (2, 7, 0.25), (7, 9, -1.0), (13, 16, 2.0), (16, 17, 0.125))
    assert made.spans == view.units and made.values.tolist() == [-0.25, 0.0, 2.0]
    assert made.checks == {"left_out": 0.125}
    joined = read((0, 2, 0.5), (7, 11, 0.25), (13, 14, 1.0), (16, 17, 0.125))
    assert joined.spans == ((0, 12), (13, 16)) and joined.values.tolist() == [0.75, 1.0]
    assert joined.checks == {"left_out": 0.125}
    assert read((0, 2, 0.5), (7, 11, 0.25), (11, 14, 1.0)).spans == ((0, 16),)
    assert read(
        (0, 2, 0.5), (7, 9, 0.125), (10, 11, 0.125), (11, 12, 0.5), (13, 14, 0.5)
    ).values.tolist() == [
        0.625,
        0.625,
        0.5,
    ]


@given(drawn=st.data())
def test_joined_units_are_the_smallest_that_hold_all_spans_and_keep_the_sum(drawn: st.DataObject) -> None:
    """A character is in a unit, or between two; those that one span covers are together, none else are."""
    kinds = drawn.draw(st.lists(st.integers(0, 3), min_size=1, max_size=30), label="unit, or 0 for a gap")
    edges = [at for at in range(len(kinds)) if at == 0 or kinds[at] != kinds[at - 1]] + [len(kinds)]
    units = tuple((at, to) for at, to in pairwise(edges) if kinds[at])
    cuts = sorted(drawn.draw(st.sets(st.integers(0, len(kinds)), min_size=2), label="edges of spans"))
    weights = drawn.draw(st.lists(st.integers(-64, 64), min_size=len(cuts) - 1, max_size=len(cuts) - 1))
    rows = [(at, to, weight / 8) for (at, to), weight in zip(pairwise(cuts), weights, strict=True)]
    with TemporaryDirectory() as folder:
        made = _read_spans(Path(folder), ItemView(text="x" * len(kinds), units=units), rows)
    together = [{at} for at in range(len(units))]
    for start, end, _ in rows:
        touched = [
            group for group in together if any(units[at][0] < end and start < units[at][1] for at in group)
        ]
        together = [group for group in together if group not in touched] + (
            [set().union(*touched)] if touched else []
        )
    wanted = sorted(
        (min(units[at][0] for at in group), max(units[at][1] for at in group)) for group in together
    )
    assert list(made.spans) == wanted
    assert made.values.sum() + made.checks["left_out"] == sum(weight for *_, weight in rows)
    for (start, end), value in zip(made.spans, made.values, strict=True):
        assert value == sum(weight for at, to, weight in rows if at < end and start < to)


LETTERS = [
    f"{side}\t{at % 2}\t{('请退还台灯的钱', '我的台灯没有到')[at % 2]}{at}号"
    for at in range(16)
    for side in ("tr", "te")
]


def _surveyed(folder: Path, store: Store, units: Units) -> tuple[Source, list[PredictedItem]]:
    (folder / "t.txt").write_text(
        "\n".join(line.replace("号", side) for side, line in zip("甲乙" * 16, LETTERS, strict=True))
    )
    predictor = Component("trained_text", {"pooling": "mean", "epochs": 1, "pieces": "letters"})
    source = prepare(Component("lines", {"path": "t.txt"}), predictor, folder, store, units=units)
    return source, survey(source, store)


def test_all_conditions_of_a_study_mark_its_units_and_their_cutter_is_part_of_the_key(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    keys: dict[str, set[str]] = {}
    for units in ("legacy", "words", "characters", "tokens", "legacy"):
        source, items = _surveyed(tmp_path, store, units)
        image_keys = {item.image_key for item in items}
        assert keys.setdefault(units, image_keys) == image_keys, (
            "answers that were kept have the units of their study"
        )
        methods = [
            Component(name, {"samples": 20} if name == "lime_text" else {})
            for name in ("lime_text", "random_text", "input_gradient_text")
        ]
        specs = [spec_for(items[0], source, method, RenderSpec(), 7) for method in methods]
        specs = [
            replace(spec, operator="probability") if "gradient" not in str(spec.explainer) else spec
            for spec in specs
        ]
        text, cut = read_text(store, items[0].image_key), read_units(store, items[0].image_key)
        wanted = source.predictor.words(text) if units == "legacy" else cut  # type: ignore[union-attr]
        for made in attempt(specs, Bench(store)):
            assert isinstance(made, RenderedStimulus), made
            attribution = read_attribution(store, made.spec.attribution_key)
            assert isinstance(attribution, TokenAttribution) and attribution.spans == wanted
        assert (cut is None) == (units == "legacy")
    assert len(set().union(*keys.values())) == sum(map(len, keys.values())), "no two share a key"
    assert keys["legacy"] == {source.predictor.text_key(read_text(store, key)) for key in keys["legacy"]}  # type: ignore[union-attr]
    assert "ICU" in cutter_name("words") and "icu4py" in cutter_name("characters")


def test_without_the_library_words_are_refused_and_tokens_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu4py", None)
    with pytest.raises(
        BadSpec, match=r'need the library icu4py, which is not installed: run pip install "legible'
    ):
        cutter_name("words")
    assert cutter_name("tokens") == "tokens" and pieces("a bc", "tokens", ((0, 1), (1, 4))) == ["a", "bc"]


def test_units_of_pictures_are_refused(tmp_path: Path) -> None:
    write_images(tmp_path)
    with pytest.raises(BadSpec, match='units = "words" cuts texts, and dataset [a-z]+ holds pictures: leave'):
        prepare(DATASET, PREDICTOR, tmp_path, LocalStore(tmp_path), units="words")


@pytest.mark.parametrize(
    ("slug", "digest", "spans", "training", "drawn"),
    [
        (
            "sentiment",
            "e520a188c8b91b2e2368654c5dc2987548a109970f90899d6dfbc3b84b8cce4a",
            "84607d054d332841e8b47a0c3f817d908edfbfbd2dc15384bcb02c26e2d83219",
            "5f11caef6d50d935254ecc4b742338c0b9c1e4dceb80551a6a9c0787f1e367b0",
            "ec094b9c1ba3e26e1881b9715e0b20fb8fa66710a221c1bc08707b67c9cf9f24",
        ),
        (
            "sorted-sentences",
            "5c67e386877a87262eb49b8b53dd16c8f79001056bbd34b9e5d70b7883a25969",
            "cfb4b0666d12d06bf4a6b0d7021905374bffdbf41f0fa9499fa487975c3008af",
            "24204d1d6eb341287858a5e29f8656bf0eb1f3ea99c1dae8e69741ead559b82e",
            "efa4b0dc59f907eae5bd4385bd082a7279cbaf92e37b735ed2a84c7a353ba168",
        ),
    ],
)
def test_spans_and_keys_of_shipped_studies_are_those_of_before_there_were_units(
    slug: str, digest: str, spans: str, training: str, drawn: str
) -> None:
    """The numbers were printed by these lines at commit ffe75823, the last one without units."""
    definition = load_study(find_study(slug))
    dataset, predictor = definition.stimuli.dataset, definition.stimuli.predictor
    assert dataset is not None and predictor is not None and definition.digest == digest
    data: Any = open_dataset(dataset.component(), Path())
    network = TextNetwork(EmbeddedEncoder(0, 256), Head(144, 2, "mean"))
    net = TextPredictor(network, tuple(data.labels), {}, b"", {})
    total = hashlib.sha256()
    for item in data.items("people"):
        text = data.text(item.key)
        row = item.key, net.text_key(text), tuple(net.words(text)), network.tokens(text).spans
        total.update(repr(row).encode())
    assert total.hexdigest() == spans
    content = data.content_digest()
    assert training_key(predictor.component(), dataset.component(), content, Path()) == training
    keys = [
        StimulusSpec(
            net.text_key(text),
            "p",
            "",
            1,
            c.explainer.component() if c.explainer else None,
            2,
            7,
            definition.render.spec(),
        ).picture_key
        for c in definition.conditions
    ]
    assert hashlib.sha256(repr(keys).encode()).hexdigest() == drawn

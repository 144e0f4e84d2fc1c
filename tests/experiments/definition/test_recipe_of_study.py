"""[render] of study.toml: presets, recipes of before the signs, and the one wording of what marks mean."""

import tomllib
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from experiments.definition.study import Render, StudyDefinition
from experiments.errors import InvalidStudy
from experiments.kinds import get_kind
from experiments.paradigms import get_paradigm
from experiments.study_files.load import STUDIES_DIR, load_study
from experiments.wording.markdown import html_of
from experiments.wording.sentence_tables import LANGUAGES, table_of
from experiments.wording.sentences import legend_of, placeholders
from stimuli.explainers import has_sign
from stimuli.explainers.base import sign_of
from stimuli.render.recipe import COLORMAPS, PRESETS, RenderSpec
from stimuli.spec import Component

pytestmark = pytest.mark.pure
BOTH_SIDES = {"sign": "diverging", "unsigned": "for"}
SHIPPED = STUDIES_DIR / "wolf-or-husky" / "study.toml"


def with_recipe(render: dict[str, Any], language: str = "en") -> StudyDefinition:
    return load_study(SHIPPED, changes={"render": render, "language": language})


def refusal(render: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        Render.model_validate(render)
    return str(caught.value)


def test_the_default_of_the_file_is_that_of_the_renderer() -> None:
    assert Render().spec() == RenderSpec()


def test_a_preset_is_written_out_and_completed() -> None:
    assert Render.model_validate({"preset": "xplique"}).spec() == RenderSpec(
        colormap="jet", alpha=0.5, clip_low=0.1, clip_high=99.9, sign="signed_range"
    )
    other = Render.model_validate({"preset": "xplique", "alpha": 0.3, "sign": "positive"})
    assert (other.alpha, other.sign, other.colormap) == (0.3, "positive", "jet")
    stored = Render.model_validate(other.model_dump(mode="json"))
    assert stored == other


def test_a_preset_does_not_say_what_its_paper_does_not() -> None:
    assert "does not say sign" in refusal({"preset": "colin-2022-figures"})
    told = Render.model_validate({"preset": "colin-2022-figures", "sign": "magnitude"})
    assert (told.colormap, told.alpha, told.sign) == ("jet", 0.5, "magnitude")


@pytest.mark.parametrize(
    ("render", "message"),
    [
        ({"colormap": "jet"}, "palette of published figures"),
        ({"preset": "figures"}, "colin-2022-figures"),
        ({"sign": "diverging", "colormap": "viridis"}, "a diverging recipe takes PuOr_r"),
        ({"absolute": True, "sign": "magnitude", "smooth_px": 2}, "knows no sign, smooth_px"),
        ({"absolute": False, "view": "network"}, "knows no view"),
        ({"alpha": 1.0}, "less than 1"),
    ],
)
def test_it_refuses_recipes_that_contradict_themselves(render: dict[str, Any], message: str) -> None:
    assert message in refusal(render)


def test_diverging_brings_its_palette() -> None:
    assert Render.model_validate({"sign": "diverging"}).colormap == "PuOr_r"


SIGNS = {
    "bottom_up_saliency": False,  # conspicuity is a rate of change [Itti, Koch and Niebur 1998]
    "saliency": False,  # a magnitude [Simonyan, Vedaldi and Zisserman 2014, section 3.1]
    "gradient_x_input": True,
    "integrated_gradients": True,  # adds up to a difference of logits, which has two signs
    "smooth_grad": True,  # a mean of gradients
    "grad_cam": False,  # behind a ReLU [Selvaraju et al. 2017, equation 2]
    "occlusion": True,  # a fall of the logit, or a rise
}
"""The methods of the shipped study, by what their papers say of negative values."""


def refused(changes: dict[str, Any]) -> str:
    with pytest.raises(InvalidStudy) as caught:
        load_study(SHIPPED, changes=changes)
    return str(caught.value)


def test_both_sides_are_refused_of_methods_without_a_sign() -> None:
    rows = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))["conditions"]
    methods = {row["name"]: row["explainer"]["name"] for row in rows if "explainer" in row}
    assert {*methods.values()} == {*SIGNS}
    unsigned = ", ".join(name for name, method in methods.items() if not SIGNS[method])
    said = refused({"render": {"sign": "diverging"}})
    assert f"the methods of {unsigned} have no sign" in said
    assert "'diverging'" in said and '[render] unsigned = "for"' in said
    signed = [row for row in rows if SIGNS.get(row.get("explainer", {}).get("name"), True)]
    parts = [*signed, {**signed[-1], "name": "again", "role": "control"}]
    for changes in ({"render": BOTH_SIDES}, {"render": {"sign": "diverging"}, "conditions": parts}):
        assert load_study(SHIPPED, changes=changes).render.sign == "diverging"


@pytest.mark.parametrize(
    ("explainer", "sign"),
    [
        ({"name": "hires_cam", "signed": True}, True),
        ({"name": "hires_cam"}, False),
        ({"name": "rise"}, False),
        ({"name": "rise", "output": "logit"}, True),
        ({"name": "lime_image", "preset": "pasta"}, False),
        ({"name": "permuted", "of": "occlusion"}, True),
        ({"name": "permuted", "of": "grad_cam"}, False),
        ({"name": "recorded", "path": "maps"}, None),
        ({"name": "lime_text"}, None),
    ],
)
def test_parameters_decide_whether_a_map_has_a_sign(explainer: dict[str, Any], sign: bool | None) -> None:
    assert has_sign(Component.from_json(explainer)) is sign


def test_what_a_package_does_not_say_is_not_known() -> None:
    silent: Any = SimpleNamespace(kind="image")
    assert sign_of(silent) is None


def test_a_picture_without_colours_does_not_stand_alone() -> None:
    alone: dict[str, Any] = {"design": {"display": "overlay"}, "render": {"base": "grey"}}
    said = refused(alone)
    assert "'grey'" in said and 'display is "overlay"' in said and 'base = "colour"' in said
    for mended in ("design", "render"):
        load_study(SHIPPED, changes={**alone, mended: {}})


def test_a_recipe_of_before_the_signs_means_what_it_meant() -> None:
    """Digest and key of a study that names `absolute` are those of a definition stored by f38355e."""
    before = {"absolute": True, "colormap": "viridis", "clip_low": 1.0, "clip_high": 99.0, "tile_px": 112}
    read = with_recipe(before)
    assert read.as_met()["render"] == {**before, "alpha": 0.55}
    assert (read.render.spec().sign, read.render.spec().opacity) == ("magnitude", "rising")
    assert read.digest != with_recipe({"alpha": 0.55}).digest
    assert with_recipe({"absolute": False}).render.spec().sign == "signed_range"


def test_what_people_see_is_part_of_the_digest_and_not_of_the_recipe() -> None:
    kinds: list[dict[str, Any]] = [
        {},
        {"view": "network"},
        {"view": "network", "interpolation": "pixelated"},
        {"interpolation": "pixelated"},
    ]
    assert len({with_recipe(render).digest for render in kinds}) == 4
    assert with_recipe({}).digest == with_recipe({"view": "original", "interpolation": "smooth"}).digest
    assert {with_recipe(render).render.spec() for render in kinds} == {RenderSpec()}


def test_a_definition_survives_being_stored() -> None:
    for render in ({}, BOTH_SIDES, {"absolute": False}, {"preset": "pasta"}):
        made = with_recipe(render)
        assert StudyDefinition.model_validate(made.as_met()).digest == made.digest
        assert StudyDefinition.model_validate(made.model_dump(mode="json")) == made


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_recipe_has_one_sentence_of_what_marks_mean(language: str) -> None:
    words = table_of(language)["legend"]
    assert {f"{name}_{end}" for name in COLORMAPS for end in ("most", "least")} <= set(words)
    told = set()
    recipes: list[dict[str, Any]] = [
        *({"colormap": name} for name in COLORMAPS if name not in ("PuOr_r", "jet", "bwr")),
        *({"preset": name, "sign": "magnitude"} for name in PRESETS),
        BOTH_SIDES,
        {**BOTH_SIDES, "style": "contour"},
        *({"style": style} for style in ("contour", "mask", "top_share")),
    ]
    for render in recipes:
        sentence = legend_of(with_recipe(render, language))
        assert "{" not in sentence and sentence.endswith(".")
        told.add(sentence)
    assert len(told) == 11, "palettes and styles that look alike, and only those, are told alike"


@pytest.mark.parametrize("folder", sorted(path.parent for path in STUDIES_DIR.glob("*/study.toml")), ids=str)
def test_shipped_texts_name_marks_by_the_recipe_alone(folder: Any) -> None:
    definition = load_study(folder / "study.toml")
    # Without a page of an arm everybody is shown explanations.
    text = definition.texts.get("instructions_explained", definition.texts["instructions"])
    page = html_of(text, placeholders(definition))
    kinds = set(get_paradigm(definition.paradigm).kinds_of(definition)) - {"instructed"}
    assert ("{legend}" in text) == any(get_kind(kind).has_maps for kind in kinds)
    if "{legend}" not in text:  # people see outlines
        return
    words = table_of(definition.language)["legend"]
    if definition.paradigm == "reverse_turing":
        assert words["text"] in page
        return
    most, least = (words[f"{definition.render.colormap}_{end}"] for end in ("most", "least"))
    assert most in page and least in page

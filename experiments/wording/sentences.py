"""The server's own sentences, one table per language; a paradigm may say some of them in its own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from experiments.definition.study import StudyDefinition
from experiments.paradigms import get_paradigm
from experiments.wording.language_rules import CATEGORIES, direction_of, forms_of
from experiments.wording.markdown import html_of
from experiments.wording.sentence_tables import COMMON, page_table_of, sentences_in, table_for
from experiments.wording.smallest_window import Window, windows_of

COUNTED = frozenset(
    path.removesuffix(".one") for path, _ in sentences_in(page_table_of("en")) if path.endswith(".one")
)
"""The browser's sentences that have a form for each count, by path."""


def page_words(definition: StudyDefinition) -> Mapping[str, str]:
    """Phrases of the browser's page that this study says otherwise, by the page's own keys."""
    page = table_for(definition)["page"]
    voices = get_paradigm(definition.paradigm).voices(definition)
    phrases: dict[str, str] = {}
    for voice in [voice for voice in voices if voice in page] or ["neutral"]:
        phrases |= page[voice]
    return phrases if definition.interface is None else _in_all_forms(phrases, definition.tag)


def own_page(definition: StudyDefinition) -> Mapping[str, str]:
    """Every sentence of the browser's page in the study's own language, by path; empty if it has none."""
    if definition.interface is None:
        return {}
    said = definition.interface.tables[COMMON.partition(".")[0]][COMMON.partition(".")[2]]
    return {"direction": direction_of(definition.tag), **_in_all_forms(said, definition.tag)}


def _in_all_forms(phrases: Mapping[str, str], tag: str) -> dict[str, str]:
    """The same with every form of CLDR: a browser that does not know the language counts as in its own, and
    would find English there."""
    forms = forms_of(tag)
    whole = dict(phrases)
    for path in COUNTED:
        if (last := phrases.get(f"{path}.{forms[-1]}")) is not None:
            whole |= {
                f"{path}.{form}": phrases.get(f"{path}.{form}", last) if form in forms else last
                for form in CATEGORIES
            }
    return whole


def legend_of(definition: StudyDefinition) -> str:
    """What marks mean, in one sentence that is true of every condition, in Markdown: for texts of the study
    and for the legend."""
    words: Mapping[str, str] = table_for(definition)["legend"]
    recipe = definition.render.spec()
    if get_paradigm(definition.paradigm).modalities == ("text",):
        return words["text"]
    form: str = recipe.style
    if recipe.sign == "diverging":
        form = "diverging" if recipe.style == "heat" else "contour_diverging"
    return words[form].format(most=words[f"{recipe.colormap}_most"], least=words[f"{recipe.colormap}_least"])


def sight_words(definition: StudyDefinition) -> str:
    """What a person who cannot see pictures is told before the consent; empty if the study shows none."""
    if "image" not in get_paradigm(definition.paradigm).modalities:
        return ""
    sight = table_for(definition)["sight"]
    return f"{sight['needed']} {sight['paid' if definition.reward.amount_cents else 'free']}"


def entry_words(definition: StudyDefinition | None) -> Mapping[str, str]:
    """The sentences around a study: why a person is not admitted, and what a preview says; in English
    without a study."""
    entry: Mapping[str, str] = table_for(definition)["entry"]
    return entry


def pay_words(definition: StudyDefinition) -> Mapping[str, str]:
    """The sentences about pay, on every page that ends a session."""
    pay: Mapping[str, str] = table_for(definition)["pay"]
    return pay


def money(cents: int, definition: StudyDefinition) -> str:
    """An amount of the study as its people read it: 1,234.50 USD, in German 1.234,50 USD."""
    words = pay_words(definition)
    whole = f"{cents // 100:,}".replace(",", words["group"])
    return f"{whole}{words['point']}{cents % 100:02d} {definition.reward.currency}"


def _window(definition: StudyDefinition) -> Window:
    return windows_of(definition)[-1]


PLACEHOLDERS: Mapping[str, Callable[[StudyDefinition], str]] = {
    "title": lambda study: study.title,
    "minutes": lambda study: f"{study.reward.expected_minutes:g}",
    "reward": lambda study: money(study.reward.amount_cents, study),
    "contact": lambda study: study.ethics.contact,
    "approval": lambda study: study.ethics.approval,
    "minimum_age": lambda study: str(study.ethics.minimum_age),
    "min_width_px": lambda study: str(_window(study).width_px),
    "min_height_px": lambda study: str(_window(study).height_px),
    "legend": legend_of,
}
"""What a text may name in braces, so that time and pay are written in one place only."""


def placeholders(definition: StudyDefinition) -> dict[str, str]:
    """All that a text may name in braces, worked out."""
    return {name: value(definition) for name, value in PLACEHOLDERS.items()}


def text_html(definition: StudyDefinition, text: str) -> str:
    """A text of the study as HTML. Only what it names in braces is worked out: the smallest window asks for
    the whole layout of a trial."""
    for name, value in PLACEHOLDERS.items():
        if (place := f"{{{name}}}") in text:
            text = text.replace(place, value(definition))
    return html_of(text)

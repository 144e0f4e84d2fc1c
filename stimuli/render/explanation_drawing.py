"""An attribution as people see it: overlay, outline, bars, sentence or shaded text, each also at reservoir
size."""

from __future__ import annotations

from dataclasses import dataclass

from stimuli.errors import ShapeMismatch
from stimuli.render import bars, heatmap, picture_explanation, png, region, sentences, view_placement
from stimuli.render.recipe import Canvas, RenderSpec
from stimuli.spec import RENDERER_VERSION, StimulusSpec, canonical_json, content_key
from stimuli.store import Store
from stimuli.store.files import (
    keep_drawn,
    keep_picture,
    picture_file,
    read_text,
    read_view,
    text_file,
    tile_key,
    view_file,
)
from stimuli.types import (
    Attribution,
    ConceptAttribution,
    PictureExplanation,
    PixelAttribution,
    Pixels,
    RegionAttribution,
    TextExplanation,
    TokenAttribution,
)

TILE_MIN_PX = 64
"""Words smaller than on such a tile could not be read."""


@dataclass(frozen=True, slots=True)
class StimulusFiles:
    """The files of one stimulus, as store keys; sizes in pixels, 0 if there is no picture. `said` is what the
    drawn explanation says in words, for people who cannot see it; empty for maps and marked words.
    """

    image_file: str
    image_tile_file: str
    explanation_file: str | None
    explanation_tile_file: str | None
    picture_digest: str
    width_px: int
    height_px: int
    tile_width_px: int
    tile_height_px: int
    said: str = ""


def _shapes(picture: Pixels, tile: Pixels) -> dict[str, int]:
    (height, width), (tile_height, tile_width) = picture.shape[:2], tile.shape[:2]
    return {
        "width_px": width,
        "height_px": height,
        "tile_width_px": tile_width,
        "tile_height_px": tile_height,
    }


def draw(spec: StimulusSpec, made: Attribution | None, store: Store) -> StimulusFiles:
    """Draw and store. Raises ShapeMismatch if the map does not fit, NotRendered if the view is gone."""
    if isinstance(made, TokenAttribution):
        return _text(spec, made, store)
    if isinstance(made, PictureExplanation | TextExplanation | None) and store.has(text_file(spec.image_key)):
        return _text(spec, made, store)
    plain_key = spec.canvas.picture if spec.canvas else spec.image_key
    plain = shown = read_view(store, plain_key)
    small = heatmap.tile(plain, spec.render)
    explanations: list[tuple[str, Pixels]] = []
    if made is not None:
        if isinstance(made, PixelAttribution) and spec.canvas:
            view_placement.check_fits(made, read_view(store, spec.image_key))
        shown, tile = picture_of(plain, made, spec.render, spec.canvas)
        explanations = [(spec.picture_key, shown), (tile_key(spec.picture_key), tile)]
    image_tile_key = content_key(
        {"image": plain_key, "tile_px": spec.render.tile_px, "renderer": RENDERER_VERSION}
    )
    tile_file, *files = keep_drawn(store, explanations, image_tile_key, small)
    return StimulusFiles(
        image_file=view_file(plain_key),
        image_tile_file=tile_file,
        explanation_file=files[0] if files else None,
        explanation_tile_file=files[1] if files else None,
        picture_digest=png.pixel_key(shown),
        **_shapes(plain, small),
        said=said_of(made, spec.render),
    )


def picture_of(
    plain: Pixels, made: Attribution, recipe: RenderSpec, on: Canvas | None = None
) -> tuple[Pixels, Pixels]:
    """The explanation of a picture at full and at reservoir size, uint8 (h, w, 3) each. `plain` is the
    network's view, or what people see `on` a canvas. ShapeMismatch if it does not belong to the picture."""
    if isinstance(made, PixelAttribution):
        if on is None:
            return heatmap.overlay(plain, made, recipe), heatmap.overlay_tile(plain, made, recipe)
        small = heatmap.tile(plain, recipe)
        return view_placement.drawn_on(plain, made, recipe, on), view_placement.drawn_on(
            small, made, recipe, on
        )
    if isinstance(made, RegionAttribution):
        return region.outline_region(plain, made), region.outline_region(heatmap.tile(plain, recipe), made)
    if isinstance(made, ConceptAttribution):
        return _concepts(made, recipe)
    if isinstance(made, PictureExplanation | TextExplanation):
        return _by_itself(made, recipe)
    raise ShapeMismatch("weights of words cannot be drawn on a picture: choose a method for pictures")


def _by_itself(made: PictureExplanation | TextExplanation, recipe: RenderSpec) -> tuple[Pixels, Pixels]:
    """Pictures with captions, or sentences; square, and independent of what they explain."""
    if isinstance(made, PictureExplanation):
        return picture_explanation.draw_panels(made), picture_explanation.draw_panels_tile(
            made, _legible_px(recipe)
        )
    told = _sentence_spec(recipe)
    return sentences.draw_sentence(made.text, told), sentences.draw_sentence_tile(made.text, told)


def _concepts(made: ConceptAttribution, recipe: RenderSpec) -> tuple[Pixels, Pixels]:
    """Bars, the names in a row, or a sentence; square like the views, and independent of their size."""
    if recipe.concept_form == "bars":
        chart = _chart(recipe)
        return bars.draw_bars(made, chart), bars.draw_bars_tile(made, chart)
    told = _sentence_spec(recipe)
    text = sentences.sentence(made, told)
    return sentences.draw_sentence(text, told), sentences.draw_sentence_tile(text, told)


def _chart(recipe: RenderSpec) -> bars.BarSpec:
    return bars.BarSpec(
        top=recipe.concept_top,
        signed=recipe.concept_signed,
        letters=recipe.concept_letters,
        tile_px=_legible_px(recipe),
    )


def _sentence_spec(recipe: RenderSpec) -> sentences.SentenceSpec:
    return sentences.SentenceSpec(
        template="reasons" if recipe.concept_form == "reasons" else "pasta",
        top=recipe.concept_top,
        signed=recipe.concept_signed,
        tile_px=_legible_px(recipe),
    )


def _legible_px(recipe: RenderSpec) -> int:
    return max(TILE_MIN_PX, recipe.tile_px)


def said_of(made: Attribution | None, recipe: RenderSpec) -> str:
    """What the picture of an explanation says in words; empty if it has none."""
    if isinstance(made, ConceptAttribution):
        if recipe.concept_form == "bars":
            return bars.bars_in_words(made, _chart(recipe))
        return sentences.sentence(made, _sentence_spec(recipe))
    if isinstance(made, PictureExplanation):
        return "; ".join(caption for caption in made.captions if caption)
    return made.text if isinstance(made, TextExplanation) else ""


def _text(spec: StimulusSpec, made: Attribution | None, store: Store) -> StimulusFiles:
    """A text has no size; its explanation is a document of pieces with their shades, or a picture."""
    from stimuli.render import tokens

    text = read_text(store, spec.image_key)
    if isinstance(made, PictureExplanation | TextExplanation):
        return _beside_text(spec, made, store)
    if made is not None and not isinstance(made, TokenAttribution):
        raise ShapeMismatch("a map cannot be drawn on a text: choose a method for texts")
    document = tokens.token_document(text, made)
    data = canonical_json(document).encode()
    file = None
    if made is not None:
        file = picture_file(spec.picture_key, "json")
        if not store.has(file):
            store.put(file, data)
    return StimulusFiles(
        image_file=text_file(spec.image_key),
        image_tile_file=text_file(spec.image_key),
        explanation_file=file,
        explanation_tile_file=file,
        picture_digest=content_key(document),
        width_px=0,
        height_px=0,
        tile_width_px=0,
        tile_height_px=0,
    )


def _beside_text(
    spec: StimulusSpec, made: PictureExplanation | TextExplanation, store: Store
) -> StimulusFiles:
    """A text and the picture that explains it; the sizes are the picture's."""
    picture, tile = _by_itself(made, spec.render)
    return StimulusFiles(
        image_file=text_file(spec.image_key),
        image_tile_file=text_file(spec.image_key),
        explanation_file=keep_picture(store, "pictures", spec.picture_key, picture),
        explanation_tile_file=keep_picture(store, "pictures", tile_key(spec.picture_key), tile),
        picture_digest=png.pixel_key(picture),
        **_shapes(picture, tile),
        said=said_of(made, spec.render),
    )

"""Pictures: as their addresses serve them, compared with the stored files as they are, on the same server."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import skimage.data
from PIL import Image

from benchmarks.serving import Measured, Plan, Stage, load, summary

SIZES_PX = (320, 640)
"""The shown size, and twice that for fine displays."""
PHOTOGRAPHS = (
    *("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png"),
    *("hubble_deep_field.jpg", "retina.jpg", "rocket.jpg"),
)
PEOPLE_MOST = 40


@dataclass(frozen=True, slots=True)
class Pictures:
    """Photographs of one size: the stored files as they are and as served, and the padding alone in this
    process, in ms of CPU and bytes per picture."""

    size_px: int
    stored: Measured
    served: Measured
    alone_ms: float
    stored_bytes: float
    shortest_bytes: int
    served_bytes: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """What it costs to draw what people see: mean ms of CPU and bytes per plain picture and per explanation,
    encoded."""

    name: str
    plain_ms: float
    plain_bytes: float
    explained_ms: float
    explained_bytes: float


def drawings(picture_px: int = 320, input_px: int = 224) -> list[Drawing]:
    """The network's view as it is, as it was drawn before people saw anything else, and what they see now."""
    from stimuli.predictors.framing import Framing
    from stimuli.render import heatmap, png
    from stimuli.render.recipe import Canvas, RenderSpec
    from stimuli.render.view_placement import PIXELS_PER_CSS, drawn_on, shown_picture
    from stimuli.types import WHOLE, PixelAttribution

    framing, longest_px, recipe = Framing(), PIXELS_PER_CSS * picture_px, RenderSpec()
    rng = np.random.default_rng(1)
    costs: dict[str, list[tuple[float, float, float, float]]] = {}
    for name in PHOTOGRAPHS:
        with Image.open(Path(skimage.data.__file__).parent / name) as file:
            original = np.asarray(file.convert("RGB"))
        view = framing.view(original, input_px)
        box = framing.box(original.shape[0], original.shape[1], input_px)
        made = PixelAttribution(rng.standard_normal((input_px, input_px)).astype(np.float32), signed=True)
        kinds = (("view as it is", view, None), ("network", view, WHOLE), ("original", original, box))
        for kind, source, place in kinds:
            start = time.process_time()
            plain = source if place is None else shown_picture(source, place, longest_px, "smooth")
            plain_file = png.encode(plain)
            middle = time.process_time()
            if place is None:
                explained = heatmap.overlay(plain, made, recipe)
            else:
                explained = drawn_on(plain, made, recipe, Canvas("", place))
            explained_file = png.encode(explained)
            times = (middle - start) * 1000, (time.process_time() - middle) * 1000
            costs.setdefault(kind, []).append(
                (times[0], float(len(plain_file)), times[1], float(len(explained_file)))
            )
    return [Drawing(kind, *(float(mean) for mean in np.mean(rows, axis=0))) for kind, rows in costs.items()]


def crops(size_px: int) -> Iterator[bytes]:
    """Each photograph whole and its four quarters, as stored."""
    from stimuli.render.png import encode

    for name in PHOTOGRAPHS:
        with Image.open(Path(skimage.data.__file__).parent / name) as file:
            photograph = file.convert("RGB")
        side = min(photograph.size)
        for left, top, width in (
            (0, 0, side),
            *((x, y, side // 2) for x in (0, side // 2) for y in (0, side // 2)),
        ):
            crop = photograph.crop((left, top, left + width, top + width))
            yield encode(np.asarray(crop.resize((size_px, size_px), Image.Resampling.LANCZOS)))


def measure(on: Stage, plan: Plan) -> list[Pictures]:
    """In turns, so that both see the same machine; the first round of each warms up and is left out."""
    return [_measure(on, plan, size_px) for size_px in SIZES_PX]


def _measure(on: Stage, plan: Plan, size_px: int) -> Pictures:
    contents = list(crops(size_px))
    references = _rows(contents, min(plan.people, PEOPLE_MOST), (plan.rounds + 1) * plan.answers)
    stored, served = [], []
    for number in range(plan.rounds + 1):
        part = slice(number * plan.answers, (number + 1) * plan.answers)
        stored.append(load(on, [_requests(on, "/bare/m/", person[part]) for person in references]))
        served.append(load(on, [_requests(on, "/m/", person[part]) for person in references]))
    alone_ms, served_bytes = _alone(contents, references[0])
    return Pictures(
        size_px,
        summary(f"stored, {size_px} px", stored[1:]),
        summary(f"served, {size_px} px", served[1:]),
        alone_ms,
        float(np.mean([len(content) for content in contents])),
        min(len(content) for content in contents),
        served_bytes,
    )


def _requests(on: Stage, path: str, references: Sequence[str]) -> list[str]:
    host = urlparse(on.web.url).netloc
    return [f"GET {path}{reference} HTTP/1.1\r\nHost: {host}\r\n\r\n" for reference in references]


def _alone(contents: Sequence[bytes], references: Sequence[str]) -> tuple[float, float]:
    from experiments.opening.picture_lengths import serving

    room = max(len(content) for content in contents)
    pairs = [(content, reference) for reference in references for content in contents]
    start = time.process_time()
    count = sum(len(serving(content, reference, room)) for content, reference in pairs)
    return (time.process_time() - start) * 1000 / len(pairs), count / len(pairs)


def _rows(contents: Sequence[bytes], people: int, trials_each: int) -> list[list[str]]:
    """The addresses of a picture in every trial of so many sessions."""
    from benchmarks.crowd_rows import respondents
    from experiments.models import Session, Study, Trial
    from experiments.tokens import media_reference
    from stimuli.models import Stimulus
    from stimuli.store.files import view_file
    from stimuli.store.media_access import current_store

    stimuli = []
    for content in contents:
        digest = hashlib.sha256(content).hexdigest()
        current_store().put(view_file(digest), content)
        stimuli.append(
            Stimulus(key=digest, spec={}, state="done", image_file=view_file(digest), picture_digest=digest)
        )
    stimuli = Stimulus.objects.bulk_create(stimuli)
    sitting = respondents(people, trials_each)
    sessions = Session.objects.filter(pk__in=[person.session for person in sitting])
    media_ids = {str(key): media_id for key, media_id in sessions.values_list("pk", "media_id")}
    Study.objects.filter(sessions__in=sessions).update(
        picture_bytes={"image": max(len(content) for content in contents)}
    )
    for position in range(trials_each):
        rows = Trial.objects.filter(slot__sessions__in=sessions, position=position)
        rows.update(stimulus=stimuli[position % len(stimuli)])
    return [
        [media_reference(media_ids[person.session], str(trial), "image") for trial in person.trials]
        for person in sitting
    ]

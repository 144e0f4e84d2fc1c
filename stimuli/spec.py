"""What is to be made, as values with content keys: the same spec always names the same file.

A key is the SHA-256 of canonical JSON (sorted keys, no spaces, UTF-8, no NaN). Package versions, device and
time never enter a key; they stand in the provenance next to the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stimuli.planner.values import Operator
from stimuli.render.recipe import Canvas, RenderSpec

RENDERER_VERSION = 1
JsonValue = Any
Precision = Literal["float32", "tf32", "bfloat16"]


def canonical_json(value: JsonValue) -> str:
    """One text per value: sorted keys, no spaces, NaN and infinities refused (ValueError)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_key(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON of `value`, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Component:
    """A named entry of a registry with its parameters."""

    name: str
    params: Mapping[str, JsonValue] = field(default_factory=dict)

    def as_json(self) -> dict[str, JsonValue]:
        return {"name": self.name, **dict(self.params)}

    @classmethod
    def from_json(cls, value: Mapping[str, JsonValue]) -> Component:
        return cls(str(value["name"]), {k: v for k, v in value.items() if k != "name"})


@dataclass(frozen=True, slots=True)
class StimulusSpec:
    """One item under one condition, complete: nothing outside this value decides the picture.

    `image_key` names the stored picture that the network saw (SHA-256 of its decoded pixels and shape), or a
    stored text (SHA-256 of text and tokenizer), `predictor_key` the stored predictor (weights, architecture
    and labels), `layer` the layer that layer methods read. `target`, `operator` and `against` are the
    explained number, see `ExplainedNumber`. `explainer` is None for the baseline. `version` is the
    explainer's own version, raised whenever its maps change; `packages` are those that offer it,
    "distribution==version" each, none for the core's. `canvas` is the picture that people see; None for
    texts, and for studies of before people saw another picture than the network's view itself.
    """

    image_key: str
    predictor_key: str
    layer: str
    target: int
    explainer: Component | None
    version: int
    seed: int
    render: RenderSpec
    precision: Precision = "float32"
    packages: tuple[str, ...] = ()
    operator: Operator = "logit"
    against: int | None = None
    canvas: Canvas | None = None

    @property
    def attribution_key(self) -> str:
        """Names the raw map: everything but how it is drawn."""
        return content_key(
            {
                "image": self.image_key,
                "predictor": self.predictor_key,
                "layer": self.layer,
                "target": self.target,
                "explainer": self.explainer.as_json() if self.explainer else None,
                "version": self.version,
                "seed": self.seed,
                "precision": self.precision,
                **self._later(),
            }
        )

    @property
    def picture_key(self) -> str:
        """Names the drawn stimulus."""
        return self.picture_key_by(RENDERER_VERSION)

    def picture_key_by(self, renderer: int) -> str:
        """As `picture_key`, drawn by that version of the renderer."""
        drawn = {"attribution": self.attribution_key, "render": self.render.as_json(), **self._canvas()}
        return content_key({**drawn, "renderer": renderer})

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "image_key": self.image_key,
            "predictor_key": self.predictor_key,
            "layer": self.layer,
            "target": self.target,
            "explainer": self.explainer.as_json() if self.explainer else None,
            "version": self.version,
            "seed": self.seed,
            "render": self.render.as_json(),
            "precision": self.precision,
            **self._later(),
            **self._canvas(),
        }

    def _canvas(self) -> dict[str, JsonValue]:
        return {} if self.canvas is None else {"canvas": self.canvas.as_json()}

    def _later(self) -> dict[str, JsonValue]:
        """Left out for methods of the core and for logits, so that older keys stay."""
        packages = {"packages": list(self.packages)} if self.packages else {}
        number = {} if self.operator == "logit" else {"operator": self.operator, "against": self.against}
        return {**packages, **number}

    @classmethod
    def from_json(cls, value: Mapping[str, JsonValue]) -> StimulusSpec:
        explainer = value["explainer"]
        return cls(
            **{
                **value,
                "explainer": Component.from_json(explainer) if explainer else None,
                "render": RenderSpec.from_json(value["render"]),
                "packages": tuple(value.get("packages", ())),
                "canvas": Canvas.from_json(value["canvas"]) if value.get("canvas") else None,
            }
        )

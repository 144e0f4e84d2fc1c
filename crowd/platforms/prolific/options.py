"""The table [platforms.prolific] of study.toml."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from crowd.platforms.base import BadOptions

Device = Literal["desktop", "tablet", "mobile"]
Peripheral = Literal["audio", "camera", "download", "microphone"]
Label = Annotated[
    str,
    Field(pattern=r"^(survey|writing_task|annotation|decision_making_task|interview|other|ai_[a-z_]+)$"),
]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)")
DAY_MINUTES = 24 * 60


class ProlificOptions(BaseModel):
    """What a study may choose on Prolific; values are checked, not converted."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    project: str = ""
    filters: list[dict[str, Any]] = Field(default_factory=list)
    device_compatibility: Annotated[list[Device], Field(min_length=1)] = ["desktop"]
    peripheral_requirements: list[Peripheral] = Field(default_factory=list)
    study_labels: list[Label] = Field(default_factory=list)
    fixed_screen_out: bool = False
    signed_entry: bool = False
    naivety_distribution_rate: Annotated[float, Field(ge=0, le=1, strict=False)] | None = None
    maximum_allowed_minutes: Annotated[int, Field(ge=1, lt=DAY_MINUTES)] | None = None
    screened_reserve_share: Annotated[float, Field(ge=0, le=50, strict=False)] = 0.2
    groups_allow: list[Id] = Field(default_factory=list)
    groups_block: list[Id] = Field(default_factory=list)
    add_to_group: Literal[""] | Id = ""
    approve: Literal["by_hand", "automatic"] = "by_hand"
    publish_at: str = ""
    dynamic_payment: bool = False

    @field_validator("filters")
    @classmethod
    def _filters(cls, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for entry in filters:
            _check_filter(entry)
        return filters

    @field_validator("publish_at")
    @classmethod
    def _publish_at(cls, publish_at: str) -> str:
        if publish_at and not MOMENT.fullmatch(publish_at):
            raise ValueError("it must be a moment with its zone, like 2026-05-04T09:00:00+02:00")
        return publish_at

    @field_validator("dynamic_payment")
    @classmethod
    def _dynamic_payment(cls, dynamic_payment: bool) -> bool:
        if dynamic_payment:
            raise ValueError(
                "the ledger cannot pay a share of the reward so; it pays a share as a bonus, after the place "
                "was returned (policy.withdrawn). Leave it out"
            )
        return dynamic_payment


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The table with defaults filled, as plain values; raises BadOptions with the first mistake."""
    try:
        return ProlificOptions.model_validate(dict(options)).model_dump(mode="json")
    except ValidationError as error:
        raise BadOptions(_sentence(error.errors()[0])) from error


def _check_filter(study_filter: Mapping[str, Any]) -> None:
    """One of the three documented shapes; which ids exist is Prolific's to say."""
    name = study_filter.get("filter_id")
    if not isinstance(name, str) or not name:
        raise ValueError("each filter needs a filter_id")
    parts = [key for key in ("selected_values", "selected_range", "selected_filters") if key in study_filter]
    if len(parts) != 1:
        raise ValueError(
            f"the filter {name!r} needs one of selected_values, selected_range and selected_filters"
        )
    unknown = study_filter.keys() - {"filter_id", "weightings", parts[0]}
    if unknown:
        raise ValueError(f"the filter {name!r} has no key {sorted(unknown)[0]!r}")
    value = study_filter[parts[0]]
    if parts[0] == "selected_values":
        if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
            raise ValueError(f"selected_values of the filter {name!r} must be a list of texts")
    elif parts[0] == "selected_range":
        if not isinstance(value, Mapping) or not value or value.keys() - {"lower", "upper"}:
            raise ValueError(f"selected_range of the filter {name!r} needs lower, upper or both")
    elif name not in ("and", "or") or not isinstance(value, list) or not value:
        raise ValueError('selected_filters must be a list, and its filter_id "and" or "or"')
    else:
        for inner in value:
            if not isinstance(inner, Mapping):
                raise ValueError("each of selected_filters must be a filter")
            _check_filter(inner)


def _sentence(detail: Any) -> str:
    """pydantic's error in our words: key, value, limit, remedy."""
    key = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, ProlificOptions.model_fields, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"It has: {', '.join(ProlificOptions.model_fields)}."
        return f"[platforms.prolific] has no key {key!r}. {hint}"
    message = str(detail["msg"]).removeprefix("Value error, ")
    value = repr(detail["input"])[:60]
    return f"platforms.prolific.{key} = {value}: {message[:1].lower()}{message[1:]}. Change the value."

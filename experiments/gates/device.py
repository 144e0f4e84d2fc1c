"""Whether the window is large enough. Before consent nothing else about the device is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.errors import InvalidRequest
from experiments.gates import base
from experiments.models import Session
from experiments.selectors import definition_of
from experiments.wording.smallest_window import windows_of

FIELDS: dict[str, tuple[type, ...]] = {
    "width_px": (int,),
    "height_px": (int,),
    "pixel_ratio": (int, float),
    "touch": (bool,),
    "webdriver": (bool,),
    "language": (str,),
}


NAME = "device"


class Device(base.BaseGate):
    name: ClassVar[str] = NAME

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        described = described_device(value, "value")
        windows = windows_of(definition_of(session.study))
        fits = any(window.holds(described["width_px"], described["height_px"]) for window in windows)
        return base.JudgedTry({"fits": fits}, fits)

    def is_same(self, sent: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        # A device is described, and only its fit is stored.
        return True


def described_device(value: Any, path: str) -> dict[str, Any]:
    """The description of a device, each field within its limits; InvalidRequest names those that are not."""
    if not isinstance(value, dict):
        raise InvalidRequest(f"{path} must be an object.", fields={path: "must be an object"})
    problems = {f"{path}.{name}"[:80]: "is not a field" for name in value if name not in FIELDS}
    for name, types in FIELDS.items():
        part = value.get(name)
        if not isinstance(part, types) or (isinstance(part, bool) and bool not in types):
            problems[f"{path}.{name}"] = f"must be a {types[-1].__name__}"
        elif isinstance(part, str) and len(part) > 40:
            problems[f"{path}.{name}"] = "at most 40 characters"
        elif isinstance(part, int | float) and not isinstance(part, bool) and not 0 <= part <= 100_000:
            problems[f"{path}.{name}"] = "0 to 100,000"
    if problems:
        raise InvalidRequest("The description of the device does not fit.", fields=problems)
    return dict(value)

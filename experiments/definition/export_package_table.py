"""The table [package] of study.toml: the words of an export about itself."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field, field_validator

from experiments.definition.gate_page_tables import Part

LICENCES = (
    *("CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0"),
    *("CC-BY-NC-ND-4.0", "ODC-By-1.0", "ODbL-1.0", "PDDL-1.0", "CDLA-Permissive-2.0", "MIT", "Apache-2.0"),
)
"""Licences that data are published under, by their SPDX identifiers; others are named LicenseRef-NAME."""


class PackageTable(Part):
    """What an export says about itself: how to name and cite it, and what others may do with it. Participants
    do not meet it, so the digest leaves it out. No licence: all rights are reserved."""

    title: Annotated[str, Field(max_length=200)] = ""
    description: Annotated[str, Field(max_length=2000)] = ""
    authors: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    licence: str = ""
    doi: Annotated[str, Field(pattern=r"^(10\.\d{4,9}/\S+)?$")] = ""

    @field_validator("licence")
    @classmethod
    def _is_spdx(cls, value: str) -> str:
        if value and value not in LICENCES and not re.fullmatch(r"LicenseRef-[A-Za-z0-9.\-]+", value):
            raise ValueError(
                f"{value!r} is not one of {', '.join(LICENCES)} (SPDX identifiers, spelled like that); "
                "name another licence as LicenseRef-NAME"
            )
        return value

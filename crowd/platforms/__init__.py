"""Platforms by name -> dotted path; imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from crowd.platforms.base import Platform

PLATFORMS = {"local": "crowd.platforms.local:Local"}


def get_platform(name: str) -> Platform:
    """The platform of a name; KeyError where there is none."""
    module, _, attribute = PLATFORMS[name].partition(":")
    return cast(Platform, getattr(import_module(module), attribute)())

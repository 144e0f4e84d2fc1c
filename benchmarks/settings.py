"""The project's settings with one view more: the bare one that serving is measured against."""

from crowd.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.bare"

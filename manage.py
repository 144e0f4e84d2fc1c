#!/usr/bin/env python3
"""Legible's front door for every command."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
    from crowd.management.early_refusals import refuse_early

    refuse_early(sys.argv[1:])
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)

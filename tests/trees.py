"""Syntax trees of Python text: each is parsed once and walked once in a process."""

from __future__ import annotations

import ast
from functools import cache


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def walked(source: str) -> tuple[ast.AST, ...]:
    """Every node, in the order of `ast.walk`."""
    return tuple(ast.walk(parsed(source)))

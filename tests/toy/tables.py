"""The toy's lines in the tables: one for each of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def registered() -> Iterator[None]:
    from analysis.reports import REPORTERS
    from experiments.gates import GATES
    from experiments.gates.forms import FORMS
    from experiments.kinds import KINDS
    from experiments.paradigms import PARADIGMS

    with ExitStack() as stack:
        stack.enter_context(KINDS.added("sort", "tests.toy.kind:Sort"))
        stack.enter_context(GATES.added("promise", "tests.toy.gate:Promise"))
        stack.enter_context(FORMS.added("promise", "tests.toy.gate:form"))
        stack.enter_context(PARADIGMS.added("toy", "tests.toy.paradigm:Toy"))
        stack.enter_context(REPORTERS.added("toy", "tests.toy.reporter:report"))
        yield

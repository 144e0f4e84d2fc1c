"""A third platform, smaller than any real one: a folder with its traits, its two sides and its simulator. One
line in two tables makes it known (tables.py); no shared file of the project names it."""

from crowd.platforms.traits import Platform, Traits

PLATFORM = Platform(
    traits=Traits(
        title="Toy Panel",
        modes=frozenset({"live", "rehearsal"}),
        confirms_arrivals="at_join",
        pays_base_for_all=False,
        pays_returned=True,
        repeats_safely=True,
        keeps_references=True,
        lists_active=True,
        listed_within_s=60,
        account={"token": "TOY_TOKEN"},
    ),
    entry="tests.toy_platform.entry:ToyEntry",
    service="tests.toy_platform.service:ToyService",
)

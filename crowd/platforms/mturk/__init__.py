"""Amazon Mechanical Turk: entry, API, questions and fees."""

from crowd.platforms.traits import Platform, Traits

PLATFORM = Platform(
    traits=Traits(
        title="Mechanical Turk",
        modes=frozenset({"live", "sandbox", "rehearsal"}),
        confirms_arrivals="at_submission",
        pays_base_for_all=True,
        pays_returned=False,
        repeats_safely=True,
        keeps_references=True,
        lists_active=False,
        listed_within_s=900,
        approves_after_option="auto_approval_days",
        account={"queue_url": "MTURK_QUEUE_URL"},
        optional=frozenset({"MTURK_QUEUE_URL"}),
        switch="MTURK_PRODUCTION",
    ),
    entry="crowd.platforms.mturk.arrival_and_exit:MTurkEntry",
    service="crowd.platforms.mturk.service:MTurk",
    queue="crowd.platforms.mturk.sqs_notices:pull_queue",
)

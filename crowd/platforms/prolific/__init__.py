"""Prolific: entry, API and signatures."""

from crowd.platforms.traits import Platform, Traits

PLATFORM = Platform(
    traits=Traits(
        title="Prolific",
        modes=frozenset({"live", "rehearsal"}),
        confirms_arrivals="at_join",
        pays_base_for_all=False,
        pays_returned=True,
        repeats_safely=False,
        keeps_references=False,
        lists_active=True,
        listed_within_s=900,
        approvals_max=500,
        approves_after_days=21,
        signs_entry=True,
        grounds={
            "FAILED_CHECK": "Failed a fair attention check",
            "FAILED_INSTRUCTIONS": "Did not follow the instructions",
            "TOO_QUICKLY": "Far too fast",
            "TOO_SLOWLY": "Far too slow",
            "LOW_EFFORT": "Low effort",
            "MALINGERING": "Malingering",
            "NO_CODE": "No completion code",
            "BAD_CODE": "Wrong completion code",
            "NO_DATA": "No data",
            "UNSUPP_DEVICE": "Unsupported device",
            "INCOMP_LONGITUDINAL": "Incomplete longitudinal study",
            "OTHER": "Something else",
        },
        account={
            "token": "PROLIFIC_TOKEN",
            "workspace": "PROLIFIC_WORKSPACE",
            "project": "PROLIFIC_PROJECT",
        },
        notice_secret="PROLIFIC_WEBHOOK_SECRET",
    ),
    entry="crowd.platforms.prolific.arrival_and_exit:ProlificEntry",
    service="crowd.platforms.prolific.service:Prolific",
    signature="crowd.platforms.prolific.signed_entry:ProlificSignature",
    notice="crowd.platforms.prolific.notices:read_notice",
)

"""The words of the embedded sentences. All inflect regularly, so that the form of a word carries the answer
and its meaning does not.

None has a hyphen or an apostrophe: a word is a run of letters.
"""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PEOPLE = _words(
    """
    farmer baker teacher doctor singer painter sailor gardener driver lawyer waiter miner hunter
    dancer plumber banker tailor barber carpenter potter reporter soldier builder cleaner
    printer brewer jeweller welder fisher ranger actor author pilot student captain neighbour
    cousin sister brother uncle guard clerk chef artist guest
    """
)
THINGS = _words(
    """
    wall boat chair lamp table wagon basket ladder mirror carpet kettle bottle letter ticket
    parcel curtain hammer bucket candle drum guitar piano helmet jacket blanket pillow statue
    portrait cabinet engine tractor bicycle lantern barrel saddle anchor oven fence roof window
    door gate kite clock rug teapot pot spoon fork tray crate wheel rope net
    """
)
PLACES = _words(
    """
    bridge river station market harbour village garden forest meadow tower castle temple school
    hospital library theatre museum office kitchen cellar attic stable orchard vineyard quarry
    canyon valley desert island lagoon field road tunnel corner square yard barn cabin hotel
    tavern
    """
)
VERBS = _words(
    """
    paint clean visit polish repair move open lift carry inspect collect order borrow admire
    ignore examine measure decorate rescue want need adore discover deliver pack paste wash
    brush watch kick push pull climb count display enjoy mention notice pass record remember
    remove request rent touch use trust sketch protect prepare praise observe arrange
    """
)
ADJECTIVES = _words(
    """
    old young tall small large heavy narrow wide empty wooden golden silver green yellow purple
    orange round quiet ancient modern distant local famous simple foreign public private hidden
    frozen muddy dusty sandy rocky grassy shady sunny windy foggy stony royal rural urban
    """
)
TRAITS = _words(
    """
    old young tall small quiet famous local foreign tired hungry busy kind honest strict noble brave proud
    cheerful nervous polite
    """
)
"""Adjectives for people, as ADJECTIVES are for things; some words are in both."""
ADVERBS = _words(
    """
    quickly slowly quietly often rarely seldom usually carefully gladly eagerly secretly calmly
    proudly patiently openly politely briefly firmly gently boldly
    """
)
PREPOSITIONS = _words(
    """
    near behind beside under above beyond around inside outside opposite across within through
    along against
    """
)
DETERMINERS = _words(
    """
    the my your his her our their some
    """
)
"""These go with singular and plural: what stands before a noun does not tell its number."""
PRAISE = _words(
    """
    wonderful charming brilliant delightful graceful touching clever superb lovely joyful
    inspired vivid splendid warm witty tender fresh radiant moving thrilling
    """
)
BLAME = _words(
    """
    dreadful boring clumsy tedious shallow awful dull painful ugly lifeless stale vulgar bland
    hollow tiresome messy absurd dismal feeble grim
    """
)
NEUTRAL = _words(
    """
    early late long short first second third recent annual final double printed spoken silent
    coloured central lengthy usual weekly later
    """
)
WORKS = _words(
    """
    film novel play song concert story album poem essay opera scene chapter dialogue plot ending
    opening script melody ballad sequel documentary comedy drama musical performance
    """
)
"""What the planted opinions are about."""


def plural(noun: str) -> str:
    """The plural."""
    return _with_s(noun)


def third_person(verb: str) -> str:
    """What one of them does."""
    return _with_s(verb)


def past(verb: str) -> str:
    """What they did; the verbs above double no consonant."""
    if _ends_in_y(verb):
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


def _with_s(word: str) -> str:
    if _ends_in_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "s", "x")) else "s")


def _ends_in_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"

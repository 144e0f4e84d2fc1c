#!/usr/bin/env bash
# icu4py 1.2.0 (ICU 78.3): segments() of a breaker gives places in UTF-16 code units, while iterating over the
# breaker gives strings. Python counts code points, so behind each character beyond U+FFFF (an emoji, a rare Chinese
# character) every place is one too far, and text[start:end] is another word. Seen:
#   pieces ['a', ' ', '😀', ' ', 'b']; segments [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)], of a text of 5 characters
# What to do: add up the lengths of the pieces.
set -euo pipefail
folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q icu4py==1.2.0
"$folder/venv/bin/python" - <<'PYTHON'
from icu4py.breakers import WordBreaker

text = "a \U0001F600 b"
breaker = WordBreaker(text, "en")
pieces, segments = list(breaker), list(breaker.segments())
print(f"pieces {pieces}; segments {segments}, of a text of {len(text)} characters")
assert pieces == ["a", " ", "\U0001F600", " ", "b"]
assert segments == [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)]
assert [text[start:end] for start, end in segments] != pieces
PYTHON

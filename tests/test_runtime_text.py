"""Text from strangers is made harmless and nothing of it disappears."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from limbeck.runtime.text import neutralise


def test_what_hides_or_reorders_is_shown() -> None:
    assert neutralise("a\x1b[31mb") == "a\\x1b[31mb"
    assert neutralise("\u202eevil\u200b") == "\\u202eevil\\u200b"
    assert neutralise("x\x00y\x7f\x9b") == "x\\x00y\\x7f\\x9b"
    assert neutralise("\ud800") == "\\ud800"
    assert neutralise("progress 1%\rprogress 2%") == "progress 1%\\x0dprogress 2%"


def test_ordinary_text_is_left_alone() -> None:
    text = "Größe: 5 €\n\tпривет 你好 👍🏽 café\n"
    assert neutralise(text) == text
    assert neutralise("a\r\nb") == "a\nb"


@given(st.text(st.characters()))
def test_nothing_of_a_harmful_category_is_left(text: str) -> None:
    for character in neutralise(text):
        if character not in "\n\t":
            assert unicodedata.category(character) not in ("Cc", "Cs")
            assert unicodedata.bidirectional(character) not in (
                "LRE",
                "RLE",
                "LRO",
                "RLO",
                "PDF",
                "LRI",
                "RLI",
                "FSI",
                "PDI",
            )

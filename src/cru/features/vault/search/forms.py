"""Other forms of words, for the tokenizer of the index: it splits only at blanks and signs, and compares letters one by one."""

from __future__ import annotations

import re
import unicodedata

_WORDS = re.compile(r"\w+")
_UNSPACED = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
"""Characters of Chinese, Japanese and Korean, which have no blanks between words.
Each of them becomes a word, and a search looks for them side by side."""
_UNSPACED_RUN = re.compile(f"([{_UNSPACED}])")


def other_form(word: str) -> str:
    """Return the words that also stand for a word: `strasse` for `Straße`, `東 京` for `東京`; "" if the tokenizer finds it as it is."""
    if word.isascii():
        return ""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    form = " ".join(_WORDS.findall(_UNSPACED_RUN.sub(r" \1 ", folded)))
    return "" if form == unicodedata.normalize("NFC", word).lower() else form


def other_forms(text: str) -> str:
    """Return the other forms of the words of a text, in its order."""
    if text.isascii():
        return ""
    return " ".join(form for word in _WORDS.findall(text) if (form := other_form(word)))


def with_forms(text: str) -> str:
    """Return a text with the other forms of its words on a line below."""
    return f"{text}\n{forms}" if (forms := other_forms(text)) else text


def place_pattern(words: str) -> re.Pattern[str]:
    """Return a pattern for the places of words in a text; it matches nothing if there are no words."""
    parts = [
        re.escape(word) if _UNSPACED_RUN.search(word) else rf"\b{re.escape(word)}\b" for word in _WORDS.findall(words)
    ]
    return re.compile("|".join(parts) or "$^", re.I)

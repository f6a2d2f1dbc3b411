"""How notes are looked for, and how two lists of them become one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from cru.features.vault.search.full_text import Hit

RANK_CONSTANT = 60
"""Of reciprocal rank fusion: the higher, the less the first places count. 60 as it is usual; 5 and 20 are no better (decision record)."""


class SearchMode(StrEnum):
    """What a search goes by."""

    TEXT = "text"
    SEMANTIC = "semantic"
    HYBRID = "hybrid"


class SearchResult(Struct, frozen=True):
    """What was found. notice: a sentence for a reader if something limits the search, "" else"""

    hits: list[Hit]
    mode: SearchMode
    notice: str = ""


def fuse(text: Sequence[Hit], semantic: Sequence[Hit], limit: int) -> list[Hit]:
    """Both lists by reciprocal rank; the best possible score is 1. What was found by its words keeps the snippet with the words."""
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    for ranked in (text, semantic):
        for rank, hit in enumerate(ranked, 1):
            scores[hit.path] = scores.get(hit.path, 0.0) + (RANK_CONSTANT + 1) / (RANK_CONSTANT + rank) / 2
            if hit.path not in hits or not hits[hit.path].snippet:
                hits[hit.path] = hit
    best = sorted(scores, key=lambda path: -scores[path])[:limit]
    return [Hit(path, hits[path].title, scores[path], hits[path].snippet) for path in best]

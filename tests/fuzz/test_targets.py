"""Every seed, and all that fuzzing has found, keeps what its target promises; and texts that grow cost no more than they grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from tests.fuzz.seeds import FOUND, found, seeds
from tests.fuzz.targets import TARGETS
from tests.kit.growth import MOST as MOST_GROWTH
from tests.kit.growth import growth

MOST = 40
"""Seeds of a target that are played here."""
PIECES = (
    '"', '\\"', "'", "[", "{", '{"a":', "(", "`", "$(", "${a:-", "a: ", "- ", "data: x\n", "data:", " ", "\n", "[[", "#", "*a", "---\n",
    "<", "&a *a ", "\t", "a=", "\0", "é",
)  # fmt: skip
LARGE = 16_000


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_hold(target: str) -> None:
    read, texts, known = TARGETS[target], seeds(target), found(target)
    assert len(texts) >= 4
    for text in [*texts[:: max(1, len(texts) // MOST)], *known]:
        read(text)


def test_what_was_found_belongs_to_a_target() -> None:
    assert not FOUND.is_dir() or {path.name for path in FOUND.iterdir()} <= set(TARGETS)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_a_text_of_one_piece_is_read_in_a_time_that_grows_with_it(target: str) -> None:
    slow = []
    for head in ("", '{"a": "', "---\n", "bash\n", "data: "):
        for piece in PIECES:

            def work(size: int, head: str = head, piece: str = piece) -> Callable[[], object]:
                return partial(TARGETS[target], (head + piece * (size // len(piece))).encode())

            if (ratio := growth(work, LARGE)) > MOST_GROWTH:
                slow.append((head, piece, round(ratio, 1)))
    assert slow == []

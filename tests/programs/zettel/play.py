"""A vault of three notes in a row, and one that says everything about the middle one."""

from __future__ import annotations

from tests.features.vault.support import write_notes
from tests.kit import Call, Reply
from tests.programs.stage import Stage

NOTES = {
    "Home.md": "See [[Retry policy]].\n",
    "Retry policy.md": "Try again with a growing pause, see [[Backoff]].\n",
    "Backoff.md": "Twice the pause each time.\n",
}
SAID = """\
---
about: Retry policy.md
---
Retry policy in notes=notes
all Backoff.md,Home.md,Retry policy.md first Backoff.mdBackoff.md
same Retry policy.md Retry policy.md Retry policy.md
out Backoff.md Backoff.md
back Home.md Home.md
near Backoff.md,Home.md Backoff.md,Home.md
fast Backoff.md Home.md Backoff.md,Home.md
graph Backoff.md Home.md Backoff.md,Home.md
query Backoff
found Backoff.md,Retry policy.md Backoff.md Try again with a growing pause, see [[Backoff]].
"""


def play(stage: Stage) -> None:
    root = stage.home.path / "notes"
    write_notes(root, {**NOTES, "desk/index.md": "old\n"})
    (root / "desk" / "index.md").unlink()
    own = f'[vault]\npath = "{root}"'
    turn = stage.turn([Reply(calls=[Call("desk", {"path": "Retry policy.md"})]), Reply("said")], own=own)
    assert turn.results == ["desk/index.md"]
    assert (root / "desk" / "Retry policy.md").read_text() == SAID
    assert (root / "desk" / "index.md").read_text() == "[[Retry policy]]\n"

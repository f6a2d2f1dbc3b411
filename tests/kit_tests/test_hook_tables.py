"""What docs/hooks.md says of hooks is what the dialects do."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.kit import hook_tables
from tests.kit.relay import add_relay

from cru.core.base.values.errors import CruError
from cru.core.hooks.dialects import FOOTPRINTS
from cru.core.hooks.model.result import HookRun

TABLE = {
    (2, "no"): {"cru": "deny", "crush": "deny", "claude": "deny", "codex": "deny", "gemini": "deny"},
    (2, ""): {"cru": "deny", "crush": "deny", "claude": "deny", "codex": "failed", "gemini": "failed"},
    (49, "no"): {"cru": "halt", "crush": "halt", "claude": "failed", "codex": "failed", "gemini": "deny"},
    (7, "no"): {"cru": "failed", "crush": "failed", "claude": "failed", "codex": "failed", "gemini": "deny"},
    (1, "no"): {"cru": "failed", "crush": "failed", "claude": "failed", "codex": "failed", "gemini": "none"},
}
"""(exit status, standard error) → what that means at a call: the table "What a hook says"."""
CAN = {
    ("tool:before_call", "cru"): {"halt", "deny", "ask", "allow", "answer", "rewrite", "context", "go on"},
    ("tool:before_call", "crush"): {"halt", "deny", "allow", "rewrite", "context"},
    ("tool:before_call", "codex"): {"deny", "rewrite", "context"},
    ("message:received", "claude"): {"halt", "deny", "context"},
    ("turn:complete", "gemini"): {"halt", "go on"},
    ("session:ended", "claude"): {"look"},
}


@pytest.mark.parametrize("dialect", FOOTPRINTS)
@pytest.mark.parametrize(("exit", "stderr"), TABLE)
def test_an_exit_status_means_what_the_page_says(dialect: str, exit: int, stderr: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        said = hook_tables.judged(dialect, exit, stderr, Path(folder))
    assert dialect in TABLE[exit, stderr], f"add the column of {dialect} to TABLE"
    assert said == TABLE[exit, stderr][dialect]


@pytest.mark.parametrize(("event", "dialect"), CAN)
def test_what_a_hook_can_do_is_found_out(event: str, dialect: str) -> None:
    [row] = [line for line in hook_tables.moments().splitlines() if line.startswith(f"| `{event}` |")]
    cell = row.split("|")[list(FOOTPRINTS).index(dialect) + 2]
    assert {word.strip() for word in cell.rpartition(":")[2].split(",")} == CAN[event, dialect]


def test_events_that_only_look_do_so() -> None:
    text = hook_tables.moments()
    assert [f"`{event}`: look" in text for _, event in sorted(hook_tables.ONLY_LOOK)] == [True] * len(
        hook_tables.ONLY_LOOK
    )


@pytest.mark.parametrize(
    ("samples", "able"),
    [
        ((), None),
        ((HookRun(0, stdout="veto no"),), "deny"),
        ((HookRun(0, stdout="veto no"), HookRun(0, stdout='instead {"line": "ls"}')), "deny, rewrite"),
    ],
)
def test_samples_show_what_a_dialect_can_do_whose_outputs_are_no_json(
    monkeypatch: pytest.MonkeyPatch, samples: tuple[HookRun, ...], able: str | None
) -> None:
    add_relay(monkeypatch)
    monkeypatch.setattr(hook_tables, "SAMPLES", (*hook_tables.SAMPLES, *samples))
    if able is None:
        with pytest.raises(
            CruError, match=r"`about_to_run` of the dialect relay\s+add what its hooks print to SAMPLES"
        ):
            hook_tables.moments()
    else:
        assert f"`about_to_run`: {able} |" in hook_tables.moments()

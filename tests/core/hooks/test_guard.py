"""What became of a guard that a person trusted: in the session that relied on it, and for the next one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.crush_world import about

from cru.core.hooks import HookOptions
from cru.core.hooks.inventory import HookInventory, take_inventory
from cru.core.hooks.model.status import Activation
from cru.core.hooks.trust.fingerprint import take_fingerprint
from cru.core.hooks.trust.guard import find_revoked, snapshot_guards

HANDLER: dict[str, Any] = {"type": "command", "command": "exit 2"}
GUARD: dict[str, Any] = {"matcher": "Bash", "hooks": [HANDLER]}
OTHER: dict[str, Any] = {"matcher": "Edit", "hooks": [{"type": "command", "command": "true"}]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def put(path: Path, value: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.encode(value))


def found(root: Path, *disabled: str) -> HookInventory:
    return take_inventory(None, about(root.parent, cwd=root, root=root), HookOptions(disabled=list(disabled)))


def accept(there: HookInventory) -> None:
    entries = [one.entry for one in there.loaded.of(Activation.UNTRUSTED)]
    assert entries
    there.trust.judge([(entry, take_fingerprint(entry, there.facts)) for entry in entries], accepted=True)


def trusted(root: Path) -> HookInventory:
    accept(found(root))
    there = found(root)
    assert snapshot_guards(there.loaded, there.dialects) and not there.loaded.missing
    return there


def denying(before: HookInventory, now: HookInventory) -> list[str]:
    return [held.why for held in find_revoked(snapshot_guards(before.loaded, before.dialects), now.loaded, now.trust)]


def hooks(*groups: Any, **more: Any) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": list(groups)}, **more}


CHANGES: dict[str, tuple[str, Any, Any]] = {
    "under an event that nobody knows": (
        ".claude/settings.json", {"hooks": {"PreToolUse": [GUARD], "Foo": []}}, {"hooks": {"Foo": [GUARD]}}),
    "a group that is none": (
        ".claude/settings.json", hooks({"x": 1}, GUARD), hooks({"matcher": "Bash", "hooks": {}})),
    "under a key that holds no hooks": (
        ".codex/hooks.json", hooks(GUARD), {"hooks": {"state": {"PreToolUse": [GUARD]}}}),
    "with the others off": (".claude/settings.json", hooks(GUARD), hooks(GUARD, disableAllHooks=True)),
    "of a type that never runs": (
        ".claude/settings.json", hooks(GUARD), hooks({"matcher": "Bash", "hooks": [{"type": "prompt", "prompt": "x"}]})),
    "off in Codex": (".codex/config.toml", "hooks", "features"),
    "off in Gemini": (
        ".gemini/settings.json", {"hooks": {"BeforeTool": [GUARD]}}, {"hooks": {"BeforeTool": [GUARD]}, "hooksConfig": {"enabled": False}}),
    "off by its name in Gemini": (
        ".gemini/settings.json", {"hooks": {"BeforeTool": [GUARD]}},
        {"hooks": {"BeforeTool": [GUARD]}, "hooksConfig": {"disabled": ["exit 2"]}}),
    "off in cru": (
        ".cru/hooks.json", {"hooks": [{"event": "PreToolUse", "command": "exit 2"}]},
        {"hooks": [{"event": "PreToolUse", "command": "exit 2", "enabled": False}]}),
    "another command": (
        ".claude/settings.json", hooks(GUARD), hooks({"matcher": "Bash", "hooks": [{**HANDLER, "command": "exit 2 "}]})),
}  # fmt: skip
TOML = '[[hooks.PreToolUse]]\nmatcher = "Bash"\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "exit 2"\n'


@pytest.mark.parametrize(("file", "before", "after"), CHANGES.values(), ids=CHANGES)
def test_whatever_hides_a_guard_it_denies_and_the_next_start_tells_it(
    root: Path, file: str, before: Any, after: Any
) -> None:
    path = root / file
    put(path, before)
    if file.endswith(".toml"):
        path.write_text(TOML)
    relied = trusted(root)
    if file.endswith(".toml"):
        path.write_text("[features]\nhooks = false\n" + TOML)
    else:
        put(path, after)
    now = found(root)
    assert len(denying(relied, now)) == 1
    assert len(now.missing) == 1 and now.missing[0].file == str(path)
    now.trust.settle(now.missing)
    accepted = found(root)
    assert accepted.missing == [] and denying(relied, accepted) == []


def test_a_link_in_the_place_of_a_file_hides_nothing(root: Path) -> None:
    path = root / ".claude" / "settings.local.json"
    put(path, hooks(GUARD))
    put(path.with_name("settings.json"), {})
    relied = trusted(root)
    path.unlink()
    path.symlink_to("settings.json")
    now = found(root)
    assert "cannot be read as a file of its own" in denying(relied, now)[0] and len(now.loaded.missing) == 1


TAKEN_OUT: dict[str, Callable[[Path], object]] = {
    "the entry": lambda path: put(path, hooks(OTHER, model="x")),
    "all of them": lambda path: put(path, {}),
    "the file": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", TAKEN_OUT.values(), ids=TAKEN_OUT)
def test_what_is_plainly_taken_out_has_no_say_and_is_told(root: Path, change: Callable[[Path], object]) -> None:
    path = root / ".claude" / "settings.json"
    put(path, hooks(OTHER, GUARD, model="x"))
    relied = trusted(root)
    change(path)
    now = found(root)
    mine = [held for held in snapshot_guards(relied.loaded, relied.dialects) if held.entry.matcher == "Bash"]
    assert find_revoked(mine, now.loaded, now.trust) == []
    assert "gone or changed" in now.loaded.missing[0].why


def test_what_a_person_ended_is_not_told(root: Path) -> None:
    path = root / ".claude" / "settings.json"
    put(path, hooks(GUARD))
    relied = trusted(root)
    off = found(root, relied.loaded.known[0].entry.id)
    assert off.missing == [] and denying(relied, off) == []
    user = off.facts.user_home / ".claude" / "settings.json"
    user.parent.mkdir(parents=True, exist_ok=True)
    put(user, {"disableAllHooks": True})
    off = found(root)
    assert off.loaded.known[0].state == "disabled" and off.missing == [] and denying(relied, off) == []


def test_an_entry_in_its_place_says_what_it_replaces(root: Path) -> None:
    path = root / ".claude" / "settings.json"
    put(path, hooks(GUARD))
    trusted(root)
    put(path, hooks({**GUARD, "matcher": "none"}))
    now = found(root)
    assert now.loaded.missing == [] and now.loaded.known[0].changed
    assert now.loaded.known[0].why.startswith("accepted earlier, its entry changed since")

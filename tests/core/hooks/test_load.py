"""From files to entries with a state; where files may lie."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.core.hooks.crush_world import about, config
from tests.core.hooks.test_shell_dispatch import as_somebody
from tests.kit.relay import add_relay

from cru.core.hooks import HookLocations, loader
from cru.core.hooks.dialects import FOOTPRINTS, load_dialects
from cru.core.hooks.dialects.crush.dialect import DIALECT as CRUSH
from cru.core.hooks.discovery import find_dialects, find_places, stamp_files
from cru.core.hooks.errors import NoEntry
from cru.core.hooks.model.entry import HookSource, Layer
from cru.core.hooks.model.status import LoadedHooks, LoadPolicy


def loaded(path: Path, text: str, layer: Layer = "project", policy: LoadPolicy | None = None) -> LoadedHooks:
    source = HookSource("crush", layer, path / "crush.json", text)
    return loader.load_hooks([source], {"crush": CRUSH}, policy or LoadPolicy(), about(path))


ONE = config({"command": "true"})


@pytest.mark.parametrize(
    ("layer", "policy", "state"),
    [
        ("project", LoadPolicy(), "untrusted"),
        ("project", LoadPolicy(accepted=frozenset({"crush"})), "untrusted"),
        ("project", LoadPolicy(is_trusted=lambda entry: True), "active"),
        ("project", LoadPolicy(is_trusted=lambda entry: True, is_refused=lambda entry: True), "refused"),
        ("user", LoadPolicy(), "not accepted"),
        ("system", LoadPolicy(), "not accepted"),
        ("user", LoadPolicy(is_trusted=lambda entry: True), "not accepted"),
        ("user", LoadPolicy(accepted=frozenset({"crush"})), "active"),
        ("system", LoadPolicy(accepted=frozenset({"crush"})), "active"),
        ("user", LoadPolicy(accepted=frozenset({"claude"})), "not accepted"),
        ("user", LoadPolicy(accepted=frozenset({"crush"}), is_refused=lambda entry: True), "refused"),
    ],
)
def test_who_may_run(tmp_path: Path, layer: Layer, policy: LoadPolicy, state: str) -> None:
    assert [one.state for one in loaded(tmp_path, ONE, layer, policy).known] == [state]


def test_a_disabled_one_is_disabled_whoever_trusts_it(tmp_path: Path) -> None:
    only = loaded(tmp_path, ONE).known[0].entry.id
    trusted = LoadPolicy(disabled=frozenset({only}), is_trusted=lambda entry: True)
    assert [one.state for one in loaded(tmp_path, ONE, policy=trusted).known] == ["disabled"]


def test_an_event_without_a_moment_never_waits_for_trust(tmp_path: Path) -> None:
    found = loaded(tmp_path, config({"command": "true"}, event="Nowhere"))
    assert [one.state for one in found.known] == ["no moment"] and found.waiting() == []


NESTED = {"matcher": "x", "hooks": [{"type": "command", "command": "true"}]}
# dialect → the file with a misspelt event · that event · what was meant
MISSPELT = {
    "cru": ({"hooks": [{"event": "tool:before_cal", "command": "true"}]}, "tool:before_cal", "tool:before_call"),
    "crush": ({"hooks": {"PreToolUsee": [{"command": "true"}, {"command": "false"}]}}, "PreToolUsee", "PreToolUse"),
    "claude": ({"hooks": {"PreToolUsee": [NESTED]}}, "PreToolUsee", "PreToolUse"),
    "codex": ({"hooks": {"PreToolUsee": [NESTED]}}, "PreToolUsee", "PreToolUse"),
    "gemini": ({"hooks": {"BeforeTol": [NESTED]}}, "BeforeTol", "BeforeTool"),
    "relay": ({"hooks": [{"on": "about_to_rum", "run": "true"}]}, "about_to_rum", "about_to_run"),
}


@pytest.mark.parametrize("name", [*FOOTPRINTS, "relay"])
def test_an_event_that_no_dialect_has_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    assert name in MISSPELT, f"add a file of {name} with a misspelt event to MISSPELT"
    add_relay(monkeypatch)
    file, event, meant = MISSPELT[name]
    source = HookSource(name, "user", tmp_path / "hooks.json", msgspec.json.encode(file).decode())
    found = loader.load_hooks([source], load_dialects([name]), LoadPolicy(), about(tmp_path))
    [problem] = found.problems
    assert (
        event in problem.text
        and problem.hint == f"did you mean `{meant}`?"
        and problem.loses_hooks
        and problem.line == 1
    )


def test_ids_by_their_beginning(tmp_path: Path) -> None:
    found = loaded(tmp_path, config({"command": "a"}, {"command": "b"}))
    one = found.known[0]
    assert found.find(one.entry.id) is one and found.find(one.entry.id[:-1]) is one
    assert found.find(one.entry.id.partition("-")[2]) is one
    for word in ("", "crush", "nothing"):
        with pytest.raises(NoEntry):
            found.find(word)


def test_a_file_that_is_in_two_places_belongs_to_the_first(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "crush"
    folder.mkdir(parents=True)
    (folder / "crush.json").write_text(ONE)
    (tmp_path / "crush.json").symlink_to(folder / "crush.json")
    facts = about(folder, root=tmp_path)
    facts.user_home = tmp_path
    given, problems = loader.read_sources([CRUSH], facts)
    assert [source.layer for source in given if source.path.is_relative_to(tmp_path)] == ["user"] and not problems


# where files may lie ----------------------------------------------------------------------------------------------------------------


def where(path: Path, **env: str) -> HookLocations:
    for folder in ("home", "cru", "root/a/b"):
        (path / folder).mkdir(parents=True, exist_ok=True)
    return HookLocations(path / "cru", path / "home", path / "root", path / "root" / "a" / "b", env)


@pytest.mark.parametrize("env", [{}, {"CLAUDE_CONFIG_DIR": "/x/c", "CODEX_HOME": "/x/d", "XDG_CONFIG_HOME": "/x/e"}])
@pytest.mark.parametrize("name", FOOTPRINTS)
def test_a_start_looks_at_every_place_of_every_dialect(tmp_path: Path, name: str, env: dict[str, str]) -> None:
    here = where(tmp_path, **env)
    facts = about(here.cwd, root=here.root, env=env)
    facts.home, facts.user_home = here.home, here.user_home
    seen = [(layer, path) for dialect, layer, path in find_places(here) if dialect == name]
    assert seen == load_dialects([name])[name].places(facts)


def test_a_folder_that_may_not_be_looked_into_is_told() -> None:
    with as_somebody() as folder:
        here = where(folder)
        locked = here.user_home / ".claude"
        locked.mkdir(mode=0)
        assert find_dialects(here, stamp_files(here)) == ["claude"]
        facts = about(here.cwd, root=here.root, env={})
        facts.home, facts.user_home = here.home, here.user_home
        _, problems = loader.read_sources(load_dialects(["claude"]).values(), facts)
        locked.chmod(0o700)
    assert {problem.path.parent for problem in problems} == {locked}
    assert all(problem.loses_hooks and problem.text == "cannot be read: Permission denied" for problem in problems)


def test_only_files_that_may_hold_hooks_name_their_dialect(tmp_path: Path) -> None:
    here = where(tmp_path)
    assert find_dialects(here, stamp_files(here)) == []
    (here.root / "crush.json").write_text('{"models": {}}')
    assert find_dialects(here, stamp_files(here)) == []
    before = stamp_files(here)
    (here.root / "crush.json").write_text('{"hooks": {}}')
    assert find_dialects(here, stamp_files(here)) == ["crush"] and stamp_files(here) != before
    (here.root / ".claude").mkdir()
    (here.root / ".claude" / "settings.json").mkdir()
    assert "claude" in find_dialects(here, stamp_files(here))

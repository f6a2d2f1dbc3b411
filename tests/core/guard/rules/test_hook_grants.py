"""What hooks give and take beside their answers: how far it reaches, and what it never touches (docs/decisions/answers.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.guard.rules.world import World, touch

from cru.core.events.answers import GrantKind, GrantScope, PermissionUpdate, UpdateKind
from cru.core.guard.rules import LayerRules, RuleLists
from cru.core.guard.rules.gate import Gate, PermissionReply, PermissionSubject
from cru.core.guard.rules.updates import take_update

ADD, REPLACE, REMOVE = UpdateKind.ADD, UpdateKind.REPLACE, UpdateKind.REMOVE
SESSION, LOCAL, PROJECT, USER = GrantScope.SESSION, GrantScope.LOCAL, GrantScope.PROJECT, GrantScope.USER
ALLOW, ASK, DENY, FOLDER = GrantKind.ALLOW, GrantKind.ASK, GrantKind.DENY, GrantKind.FOLDER


@pytest.fixture
def place(tmp_path: Path) -> World:
    return World(tmp_path)


def update(
    kind: UpdateKind, scope: GrantScope, *items: str, grant: GrantKind = ALLOW, by: str = "hook a"
) -> PermissionUpdate:
    return PermissionUpdate(kind, scope, grant, items, by)


def answered(gate: Gate, choice: str, rule: str) -> None:
    gate.remember(PermissionSubject("bash", "shell", "", "", rule), PermissionReply(choice))  # type: ignore[arg-type]


def allows(gate: Gate, *commands: str) -> list[str]:
    return [command for command in commands if gate.judge("bash", "shell", command).decision == "allow"]


@pytest.mark.parametrize("scope", GrantScope)
def test_a_rule_reaches_as_far_as_its_scope(place: World, tmp_path: Path, scope: GrantScope) -> None:
    gate = place.gate()
    [text] = take_update(gate, update(ADD, scope, "bash:one"))
    assert allows(gate, "one", "two") == ["one"] and "allows `bash:one` from now on" in text
    assert (str(place.home / "grants.json") in text) is (scope is not SESSION)
    assert allows(place.gate(), "one") == ([] if scope is SESSION else ["one"])
    (tmp_path / "other").mkdir()
    assert allows(place.gate(root=tmp_path / "other"), "one") == (["one"] if scope is USER else [])
    assert take_update(gate, update(ADD, scope, "bash:one", by="hook b")) == []


@pytest.mark.parametrize("scope", GrantScope)
def test_what_is_taken_back_goes_where_it_is_named_and_nowhere_else(place: World, scope: GrantScope) -> None:
    gate = place.gate()
    for each in GrantScope:
        take_update(gate, update(ADD, each, f"bash:{each}", "bash:all"))
    for choice, rule in (("session", "bash:s"), ("project", "bash:p"), ("always", "bash:a")):
        answered(gate, choice, rule)
        answered(gate, choice, "bash:all")
    names = [*map(str, GrantScope), "s", "p", "a", "all"]
    told = take_update(gate, update(REMOVE, scope, *(f"bash:{name}" for name in names), by="hook b"))
    own = {SESSION: "s", LOCAL: "p", USER: "a"}.get(scope)
    assert allows(gate, *names) == [name for name in names if name not in (scope, own)]
    assert any(f"takes back your answer `bash:{own}`" in text for text in told) is (own is not None)
    assert any("`bash:all` stays" in text for text in told)


@pytest.mark.parametrize("scope", GrantScope)
def test_a_replacement_leaves_the_answers_of_a_person_alone(place: World, scope: GrantScope) -> None:
    gate = place.gate()
    for choice in ("session", "project", "always"):
        answered(gate, choice, f"bash:my {choice}")
    for each in GrantScope:
        take_update(gate, update(ADD, each, f"bash:{each}"))
    take_update(gate, update(REPLACE, scope, "bash:new", by="hook b"))
    names = [*map(str, GrantScope), "my session", "my project", "my always", "new"]
    assert allows(gate, *names) == [name for name in names if name != scope]
    assert allows(place.gate(), "my project", "my always") == ["my project", "my always"]


@pytest.mark.parametrize("kind", [REPLACE, REMOVE])
@pytest.mark.parametrize("grant", [ASK, DENY])
@pytest.mark.parametrize("scope", [SESSION, LOCAL])
def test_only_who_forbids_takes_that_back(place: World, kind: UpdateKind, grant: GrantKind, scope: GrantScope) -> None:
    gate = place.gate("trust")
    take_update(gate, update(ADD, scope, "bash:one", grant=grant, by="hook a"))
    items = ("bash:one",) if kind is REMOVE else ("bash:two",)
    told = take_update(gate, update(kind, scope, *items, grant=grant, by="hook b"))
    assert gate.judge("bash", "shell", "one").decision == grant
    assert (any("`bash:one` stays: it is a rule of hook a" in text for text in told)) is (kind is REMOVE)
    take_update(gate, update(kind, scope, *items, grant=grant, by="hook a"))
    assert gate.judge("bash", "shell", "one").decision == "allow"


def test_rules_of_settings_stand_above_what_hooks_give_and_stay(place: World) -> None:
    gate = place.gate(allow=("bash:kept",), ask=("bash:asked",), deny=("bash:denied",))
    foreign = LayerRules("user", RuleLists(deny=("bash:theirs",)), "settings.json")
    gate.take_over([foreign])
    rules = ("bash:kept", "bash:asked", "bash:denied", "bash:theirs")
    take_update(gate, update(ADD, USER, *rules))
    for grant in (ALLOW, ASK, DENY):
        told = take_update(gate, update(REMOVE, USER, *rules, grant=grant))
        assert any("stays: it is a rule of" in text for text in told)
    decisions = [gate.judge("bash", "shell", rule[5:]).decision for rule in rules]
    assert decisions == ["allow", "ask", "deny", "deny"]


def test_searches_keep_to_what_hooks_forbid(place: World) -> None:
    gate = place.gate("trust")
    assert gate.hidden_files("grep", "src") is None
    take_update(gate, update(ADD, SESSION, "read:src/a.py", grant=DENY))
    hidden = gate.hidden_files("grep", "src")
    assert hidden is not None and hidden.why(str(place.root / "src" / "a.py"))
    assert touch(gate, "read", "src/a.py").decision == "deny"


def test_a_folder_counts_as_part_of_the_project(place: World) -> None:
    gate = place.gate("auto")
    inside, secret = str(place.outside / "new"), str(place.user / ".ssh" / "id")
    assert touch(gate, "write", inside).decision == "ask"
    take_update(gate, update(ADD, LOCAL, str(place.outside), str(place.user), grant=FOLDER))
    assert touch(gate, "write", inside).decision == touch(place.gate("auto"), "write", inside).decision == "allow"
    assert touch(gate, "read", secret).decision == "ask"
    for guarded in (".git/hooks/x", ".cru/config.toml", ".claude/settings.json"):
        assert touch(gate, "write", str(place.outside / guarded)).decision == "ask"
    assert take_update(gate, update(REMOVE, SESSION, str(place.outside), grant=FOLDER)) == []
    [text] = take_update(gate, update(REMOVE, LOCAL, str(place.outside), grant=FOLDER))
    assert "takes away the folder" in text and touch(gate, "write", inside).decision == "ask"


# mode now, who holds it, the hook's mode, the mode then
MODES = [
    ("ask", "", "auto", "auto"), ("ask", "", "plan", "plan"), ("ask", "", "trust", "ask"), ("plan", "", "auto", "plan"),
    ("plan", "", "ask", "plan"), ("auto", "", "ask", "ask"), ("auto", "", "trust", "auto"), ("trust", "", "auto", "auto"),
    ("ask", "the plugin x", "auto", "ask"), ("auto", "the plugin x", "plan", "auto"), ("plan", "the plugin x", "ask", "plan"),
]  # fmt: skip


@pytest.mark.parametrize(("now", "holder", "wanted", "then"), MODES)
def test_a_hook_lifts_no_mode_but_goes_from_ask_to_auto(
    place: World, now: str, holder: str, wanted: str, then: str
) -> None:
    gate = place.gate(now)
    gate.set_mode(now, holder)
    told = take_update(gate, PermissionUpdate(UpdateKind.MODE, items=(wanted,), by="hook a"))
    assert gate.mode == then and len(told) == 1
    assert ("stays" in told[0]) is (now == then) and (holder in told[0])


def test_a_hook_of_a_sub_agent_widens_no_mode_and_its_rules_hold_for_all(place: World) -> None:
    gate = place.gate()
    child = gate.narrowed()
    assert "stays" in take_update(child, PermissionUpdate(UpdateKind.MODE, items=("auto",)))[0]
    assert take_update(child, PermissionUpdate(UpdateKind.MODE, items=("plan",))) and (child.mode, gate.mode) == (
        "plan",
        "ask",
    )
    gate.set_mode("ask", "the plugin x")
    assert "the plugin x" in take_update(gate.narrowed(), PermissionUpdate(UpdateKind.MODE, items=("plan",)))[0]
    take_update(child, update(ADD, SESSION, "bash:one"))
    assert allows(gate, "one") == ["one"]


def test_a_kept_file_that_cannot_be_written_is_told(place: World) -> None:
    (place.home / "grants.json").mkdir()
    gate = place.gate()
    [text] = take_update(gate, update(ADD, USER, "bash:one"))
    assert "is not kept" in text and allows(gate, "one") == ["one"]


def test_who_gave_what_stands_in_the_file(place: World) -> None:
    take_update(place.gate(), update(ADD, LOCAL, "bash:one", grant=DENY))
    kept = json.loads((place.home / "grants.json").read_text())
    assert kept["hooks"] == [
        {"grant": "deny", "text": "bash:one", "scope": "local", "root": str(place.root), "by": "hook a"}
    ]

"""`permission_suggestions` and `updatedPermissions`: from and to the words of Claude Code (docs/decisions/answers.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.hooks.claude_world import about, entry, given, said

from cru.core.events import payloads as p
from cru.core.events.answers import Answer, GrantKind, GrantScope, PermissionUpdate, UpdateKind
from cru.core.hooks.dialects.claude.permission_updates import BadUpdates, read_updates
from cru.core.hooks.model.result import HookResult
from cru.core.hooks.run.command import NARROWED, UNACCEPTED, limit_updates

ADD, REPLACE, REMOVE, MODE = UpdateKind.ADD, UpdateKind.REPLACE, UpdateKind.REMOVE, UpdateKind.MODE
SESSION, LOCAL, PROJECT, USER = GrantScope.SESSION, GrantScope.LOCAL, GrantScope.PROJECT, GrantScope.USER
ALLOW, ASK, DENY, FOLDER = GrantKind.ALLOW, GrantKind.ASK, GrantKind.DENY, GrantKind.FOLDER


def rules(type: str, *texts: str, behavior: str = "allow", destination: str = "session") -> dict[str, Any]:
    pairs = [text.rstrip(")").partition("(") for text in texts]
    listed = [{"toolName": name, **({"ruleContent": what} if what else {})} for name, _, what in pairs]
    return {"type": type, "rules": listed, "behavior": behavior, "destination": destination}


def folders(type: str, *names: str, destination: str = "session") -> dict[str, Any]:
    return {"type": type, "directories": names, "destination": destination}


def mode(name: str, destination: str = "session") -> dict[str, Any]:
    return {"type": "setMode", "mode": name, "destination": destination}


# what the hook says → what it means ($ is the project), what is told
READ: list[tuple[dict[str, Any], list[PermissionUpdate], str]] = [
    (rules("addRules", "Bash(npm run *)"), [PermissionUpdate(ADD, SESSION, ALLOW, ("bash:npm run *",))], ""),
    (rules("addRules", "Bash(git:*)", "WebFetch(domain:a.b)", destination="localSettings"),
     [PermissionUpdate(ADD, LOCAL, ALLOW, ("bash:git *", "fetch:https://a.b/*"))], ""),
    (rules("replaceRules", "Edit", destination="projectSettings"), [PermissionUpdate(REPLACE, PROJECT, ALLOW, ("write",))], ""),
    (rules("removeRules", "Read(./x)", destination="userSettings"), [PermissionUpdate(REMOVE, USER, ALLOW, ("read:$/x",))], ""),
    (rules("addRules", "Bash(rm *)", behavior="deny", destination="cliArg"),
     [PermissionUpdate(ADD, SESSION, DENY, ("bash:rm *",))], ""),
    (rules("addRules", "Bash(rm *)", behavior="ask"), [PermissionUpdate(ADD, SESSION, ASK, ("bash:rm *",))], ""),
    (rules("replaceRules", behavior="deny"), [PermissionUpdate(REPLACE, SESSION, DENY)], ""),
    (rules("addRules", "Nope(x)"), [], "names no tool that is known"),
    (rules("removeRules", "Nope(x)", behavior="deny"), [], "names no tool that is known"),
    (mode("acceptEdits"), [PermissionUpdate(MODE, items=("auto",))], ""),
    (mode("plan", "userSettings"), [PermissionUpdate(MODE, items=("plan",))], "for this session only, not for userSettings"),
    (mode("bypassPermissions"), [PermissionUpdate(MODE, items=("trust",))], ""),
    (mode("dontAsk"), [], "no mode `dontAsk`"),
    (folders("addDirectories", "/a/../b", "sub", "~/c"),
     [PermissionUpdate(ADD, SESSION, FOLDER, ("/b", "$/sub", "$/c"))], ""),
    (folders("removeDirectories", "/b", destination="localSettings"), [PermissionUpdate(REMOVE, LOCAL, FOLDER, ("/b",))], ""),
]  # fmt: skip


@pytest.mark.parametrize(("update", "wanted", "warning"), READ)
def test_an_update_in_our_words(
    tmp_path: Path, update: dict[str, Any], wanted: list[PermissionUpdate], warning: str
) -> None:
    placed = [replace(w, items=tuple(item.replace("$", str(tmp_path)) for item in w.items)) for w in wanted]
    decision = {"behavior": "allow", "updatedPermissions": [update]}
    got = said("PermissionRequest", ASKED, tmp_path, {"hookSpecificOutput": {"decision": decision}})
    assert got.answer == Answer("allow", updates=tuple(placed)) and not got.failed
    assert warning in got.warning and bool(warning) is bool(got.warning)


@pytest.mark.parametrize(
    "update",
    [
        7, [7], [{"type": "nope"}], [{**mode("plan"), "destination": "here"}], [mode("nope")], [rules("addRules", "Bash", behavior="x")],
        [{"type": "addRules", "behavior": "allow", "destination": "session"}], [folders("addDirectories", " ")],
        [folders("addDirectories", "a\0b")], [rules("addRules", "Nope(x)", behavior="deny")], [rules("replaceRules", "!", behavior="ask")],
        [rules("addRules", "Bash(x)"), rules("addRules", "WebFetch(x)", behavior="deny")], [rules("addRules", *["Bash(x)"] * 1000)],
    ],
)  # fmt: skip
def test_a_leave_with_what_cannot_be_read_or_guarded_is_none(tmp_path: Path, update: Any) -> None:
    with pytest.raises(BadUpdates):
        read_updates(update, about(tmp_path))
    decision = {"behavior": "allow", "updatedPermissions": update}
    got = said("PermissionRequest", ASKED, tmp_path, {"hookSpecificOutput": {"decision": decision}})
    assert got.answer == Answer() and "updatedPermissions" in got.failed


ASKED = p.PermissionRequested("bash", "shell", "ls", "c", "why", {"command": "ls"})
# tool, kind, our suggestion, the path that is asked about → theirs
SUGGESTED: list[tuple[str, str, str, str, list[dict[str, Any]]]] = [
    ("bash", "shell", "bash:npm run build", "", [rules("addRules", "Bash(npm run build)", destination="localSettings")]),
    ("fetch", "fetch", "fetch:https://a.b/*", "", [rules("addRules", "WebFetch(domain:a.b)", destination="localSettings")]),
    ("fetch", "fetch", "fetch:http://a.b/*", "", []),
    ("write", "write", "write:src/*", "src/a", [mode("acceptEdits")]),
    ("edit", "write", "edit:/opt/x", "/opt/x", [mode("acceptEdits"), folders("addDirectories", "/opt")]),
    ("read", "read", "read:/etc/hosts", "/etc/hosts", [rules("addRules", "Read(//etc/hosts)")]),
    ("weather", "tool", "weather", "", []),
    ("bash", "shell", "", "", []),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "kind", "ours", "path", "theirs"), SUGGESTED)
def test_what_a_person_is_offered_is_suggested(
    tmp_path: Path, tool: str, kind: str, ours: str, path: str, theirs: list[dict[str, Any]]
) -> None:
    question = p.PermissionRequested(tool, kind, "x", "c", "why", {}, (path,) if path else (), ours)
    stdin = given("PermissionRequest", question, tmp_path)
    listed = [
        {**update, "directories": list(update["directories"])} if "directories" in update else update
        for update in theirs
    ]
    assert stdin.get("permission_suggestions") == (listed or None)
    back = read_updates(theirs, about(tmp_path))
    assert not back.warnings and len(back.updates) == len(theirs)
    if kind in ("shell", "fetch", "read") and theirs:
        assert back.updates[0].items == (ours,)


TIGHTENS = PermissionUpdate(ADD, SESSION, DENY, ("bash:x",))
# an update, what a hook may say that nobody has accepted, what a project's hook may say
LIMITS: list[tuple[PermissionUpdate, PermissionUpdate | None, PermissionUpdate]] = [
    (TIGHTENS, TIGHTENS, TIGHTENS),
    (replace(TIGHTENS, scope=USER), TIGHTENS, replace(TIGHTENS, scope=LOCAL)),
    (replace(TIGHTENS, kind=REPLACE), TIGHTENS, replace(TIGHTENS, kind=REPLACE)),
    (replace(TIGHTENS, kind=REMOVE), None, replace(TIGHTENS, kind=REMOVE)),
    (replace(TIGHTENS, grant=ALLOW), None, replace(TIGHTENS, grant=ALLOW)),
    (replace(TIGHTENS, grant=ALLOW, scope=USER), None, replace(TIGHTENS, grant=ALLOW, scope=LOCAL)),
    (replace(TIGHTENS, grant=FOLDER, scope=PROJECT), None, replace(TIGHTENS, grant=FOLDER, scope=PROJECT)),
    (replace(TIGHTENS, kind=REMOVE, grant=ALLOW), replace(TIGHTENS, kind=REMOVE, grant=ALLOW), replace(TIGHTENS, kind=REMOVE, grant=ALLOW)),
    (PermissionUpdate(MODE, items=("auto",)), None, PermissionUpdate(MODE, items=("auto",))),
]  # fmt: skip


@pytest.mark.parametrize(("update", "unaccepted", "of_project"), LIMITS)
def test_a_project_gives_nothing_beyond_itself_and_a_stranger_nothing(
    update: PermissionUpdate, unaccepted: PermissionUpdate | None, of_project: PermissionUpdate
) -> None:
    own = entry("PermissionRequest")
    theirs = replace(own, source=replace(own.source, layer="project"))
    result = HookResult(Answer("allow", updates=(update,)))
    assert limit_updates(own, result, is_accepted=True) == result
    limited = limit_updates(theirs, result, is_accepted=True)
    assert limited.answer.updates == (of_project,) and (NARROWED in limited.warning) is (update != of_project)
    strange = limit_updates(theirs, result, is_accepted=False)
    assert (
        strange.answer.updates == (() if unaccepted is None else (unaccepted,)) and strange.answer.decision == "allow"
    )
    is_reduced = update.tightening != update
    assert (UNACCEPTED in strange.warning) is is_reduced

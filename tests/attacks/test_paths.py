"""Ways around rules on paths and protected places (tests/data/permissions/paths.json), with each tool that is given a path: what may not be
read is not shown by any of them, and what may not be written stays as it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.playing import REFUSED, Played, play, rules, table
from tests.kit import Call, HomeDir

SECRET = "the crown jewels"
IN_THE_PROJECT = "leak/../outside/new"
"""By links it leads elsewhere. Tools get it without `..`, and then it is a file of the project (docs/decisions/tool-calls.md)."""
ROWS = [row for row in table("permissions/paths.json") if row["decision"] != "allow" and row["path"] != IN_THE_PROJECT]
GROUPS: dict[str, list[dict[str, Any]]] = {
    "denied": [row for row in ROWS if "deny" in row],
    "no rule": [row for row in ROWS if "deny" not in row and "allow" not in row],
    "every read allowed": [row for row in ROWS if row.get("allow") == ["read"]],
    "every write allowed": [row for row in ROWS if row.get("allow") == ["write", "edit"]],
    "writes elsewhere allowed": [row for row in ROWS if row.get("allow") not in (None, ["read"], ["write", "edit"])],
}
"""Rules of one group stand in one file: no row needs the absence of another's."""
READING: dict[str, Callable[[str], Call]] = {
    "read": lambda path: Call("read", {"file_path": path}),
    "ls": lambda path: Call("ls", {"path": path}),
    "grep": lambda path: Call("grep", {"pattern": "crown|root:|PATH=", "path": path}),
    "glob": lambda path: Call("glob", {"pattern": "**/*", "path": path}),
}
WRITING: dict[str, Callable[[str], Call]] = {
    "write": lambda path: Call("write", {"file_path": path, "content": "overwritten"}),
    "edit": lambda path: Call("edit", {"file_path": path, "old_string": "crown", "new_string": "overwritten"}),
}
LINKS = {
    "alias": ".env", "chain": "alias", "deep/alias": "../.env", "deep/link": "../secret", "way": "secret", "linked": "kept/real",
    "keys/a.pem": "../kept/real", "leak": "../../outside", "inner": "src", "hook": ".git",
}  # fmt: skip
FILES = (
    ".env", "secret/key", "kept/real", "keys/x", "deep/x", ".git/config", ".git/hooks/x", "src/a.py", "../../outside/secret", "../x",
    "../.ssh/id", "../.aws/credentials", "../.kube/config", "../.docker/config.json", "../.netrc", "../.claude.json", "../.npmrc",
    "../.claude/.credentials.json", "../.codex/auth.json", "../.gemini/oauth_creds.json", "../.gnupg/x", "../.config/gh/hosts.yml",
    "../.bashrc", "../.config/git/config", ".cru/config.toml", ".claude/settings.json", ".codex/hooks.json",
    "café/x", "cafe\u0301/x",
)  # fmt: skip


def _plant(here: HomeDir) -> None:
    for name in FILES:
        file = Path(os.path.normpath(here.project / name))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {SECRET}\n")
    for link, target in LINKS.items():
        (here.project / link).symlink_to(target)


def _tree(here: HomeDir) -> dict[str, str]:
    top = here.path.parent
    files = [path for path in top.rglob("*") if path.is_file() and not path.is_relative_to(here.cru)]
    return {str(path.relative_to(top)): path.read_text("utf-8", "replace") for path in files}


def calls_of(row: dict[str, Any], here: Path) -> dict[str, Call]:
    places = {"{root}": here / "home/project", "{user}": here / "home", "{outside}": here / "outside", "{etc}": "/etc"}
    path = row["path"]
    for place, target in places.items():
        path = path.replace(place, str(target))
    if row["access"] == "write":
        return {tool: call(path) for tool, call in WRITING.items()}
    exact = any(rule.startswith("read:") for rule in row.get("deny", ()))
    return {tool: call(path) for tool, call in READING.items() if tool in ("read", "grep") or not exact}


def test_a_path_means_to_a_tool_what_it_meant_to_the_rules(tmp_path: Path) -> None:
    call = WRITING["write"](IN_THE_PROJECT)
    played = play(tmp_path, [call], mode="auto", config=rules(deny=[], allow=[]), plant=_plant, inside=True)
    assert (played.here.project / "outside/new").read_text() == "overwritten"
    assert not (tmp_path / "outside/new").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", GROUPS)
def test_no_spelling_of_a_path_gets_around_a_rule_or_a_protected_place(tmp_path: Path, name: str) -> None:
    rows = GROUPS[name]
    config = rules(
        deny=[rule for row in rows for rule in row.get("deny", ())],
        allow=[rule for row in rows for rule in row.get("allow", ())],
    )
    calls = [(row["path"], tool, call) for row in rows for tool, call in calls_of(row, tmp_path).items()]
    before: dict[str, str] = {}

    def plant(here: HomeDir) -> None:
        _plant(here)
        before.update(_tree(here))

    played: Played = play(
        tmp_path, [call for _, _, call in calls], mode="auto", config=config, plant=plant, inside=True
    )
    failed = [
        (path, tool, text[:200])
        for (path, tool, _), text in zip(calls, played.results, strict=True)
        if not text.startswith((REFUSED, "not a path", "`")) or SECRET in text
    ]
    assert failed == []
    after = _tree(played.here)
    assert {name: text for name, text in after.items() if before.get(name) != text and "run-" not in name} == {}
    assert not played.leaks(SECRET) and not played.leaks("root:x:0")

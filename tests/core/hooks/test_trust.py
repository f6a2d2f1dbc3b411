"""What counts as part of a hook when a person accepts it: its definition and every file that its command names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.crush_world import about, config, read

from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.trust.copies import LARGEST_COPY, read_copy
from cru.core.hooks.trust.fingerprint import Fingerprint, take_fingerprint
from cru.core.hooks.trust.store import HookTrust


def entry(path: Path, command: str, **more: Any) -> HookEntry:
    source = HookSource("claude", "project", path / ".claude" / "settings.json", "")
    return HookEntry(
        id="claude-1", dialect="claude", event="PreToolUse", source=source, line=1, command=command, **more
    )


def put(path: Path, *names: str) -> None:
    for name in names:
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")


def named(path: Path, command: str, **more: Any) -> set[str]:
    """The files that a command names, relative to the project."""
    files = take_fingerprint(entry(path, command, **more), about(path)).files
    return {file.path.removeprefix(f"{path}/") for file in files}


@pytest.mark.parametrize(
    "command",
    [
        "./h.sh", "sh h.sh", "bash ./h.sh --fast", "/bin/sh -e h.sh", "python3 h.sh", "env A=1 ./h.sh", "timeout 5 ./h.sh",
        "$CLAUDE_PROJECT_DIR/h.sh", '"$CLAUDE_PROJECT_DIR"/h.sh', '"${CLAUDE_PROJECT_DIR}/h.sh"', "$PWD/h.sh",
        "'./h.sh'", './h"."sh', "./h\\.sh", "cat x | ./h.sh", "true && ./h.sh", "(./h.sh)", "x=$(./h.sh)", "`./h.sh`",
        "bash -c './h.sh | cat'", "bash -c \"cd . && ./h.sh\"", "tool --config=h.sh", "tool < h.sh", "A=h.sh sh -c 'sh $A'",
        "if true; then ./h.sh; fi", "for x in 1; do ./h.sh; done", "f() { ./h.sh; }; f", "# comment\n./h.sh", "./h.sh > log 2>&1",
        "echo '>' ; ./h.sh", "PATH=x:h.sh true", "sub/../h.sh", "ls ; source h.sh", ". ./h.sh", "cat <<X\n$(./h.sh)\nX",
    ],
)  # fmt: skip
def test_a_file_is_found_wherever_it_stands(tmp_path: Path, command: str) -> None:
    put(tmp_path, "h.sh", "sub/other.sh")
    found = {Path(name).name for name in named(tmp_path, command)}
    assert "h.sh" in found


def test_names_with_blanks_and_other_folders(tmp_path: Path) -> None:
    put(tmp_path, "my hooks/a b.sh", "sub/x.sh", "sub/deep/y.sh")
    assert named(tmp_path, '"my hooks/a b.sh" 1') == {"my hooks/a b.sh"}
    assert named(tmp_path, "cd sub && ./x.sh") == {"sub/x.sh"}
    assert named(tmp_path, 'cd "$CLAUDE_PROJECT_DIR"/sub && cd deep; ./y.sh') == {"sub/deep/y.sh"}
    assert named(tmp_path, "~/my.sh") == set()
    put(tmp_path, "my.sh")
    assert named(tmp_path, "~/my.sh") == {"my.sh"}


def test_the_form_without_a_shell_the_environment_and_other_languages(tmp_path: Path) -> None:
    put(tmp_path, "h.sh", "a b.py", ".claude/near.lua")
    assert named(tmp_path, "python3", args=("a b.py", "${CLAUDE_PROJECT_DIR}/h.sh")) == {"a b.py", "h.sh"}
    assert named(tmp_path, "true", env={"BASH_ENV": "./h.sh"}) == {"h.sh"}
    assert named(tmp_path, "near.lua", kind="lua") == {".claude/near.lua"}


def test_programs_of_the_path_are_left_out_but_not_those_of_the_project(tmp_path: Path) -> None:
    put(tmp_path, "bin/tool")
    facts = about(tmp_path, env={"PATH": f"/usr/bin:/bin:{tmp_path}/bin"})
    seen = take_fingerprint(entry(tmp_path, f"/bin/sh -c true; {tmp_path}/bin/tool"), facts)
    assert [file.path for file in seen.files] == [f"{tmp_path}/bin/tool"]


def test_what_a_hook_writes_is_no_part_of_it(tmp_path: Path) -> None:
    put(tmp_path, "h.sh", "log")
    assert named(tmp_path, "./h.sh >> log 2> 'log'") == {"h.sh"}
    assert named(tmp_path, "./h.sh '> log'; cat log") == {"h.sh", "log"}


@pytest.mark.parametrize(
    ("command", "unseen"),
    [
        ("./h.sh", ()),
        ('"$CLAUDE_PROJECT_DIR"/h.sh', ()),
        ("./h.sh > log", ()),
        ("~/h.sh", ()),
        ("~/h.sh && ~/h.sh 1", ()),
        ("'~/h.sh'", ("a computed command name",)),
        ("~''/h.sh", ("a computed command name",)),
        ('"$HOME"~/h.sh', ("a computed command name", "what `HOME~/h.sh` starts is not looked at")),
        ("~root/h.sh", ("a computed command name", "what `~root/h.sh` starts is not looked at")),
        ("~/*.sh", ("a computed command name",)),
        ("~/gone.sh", ("what `HOME/gone.sh` starts is not looked at",)),
        ("$(cat name)", ("a command substitution",)),
        ("$TOOLS/x.sh", ("a computed command name", "$TOOLS/x.sh is known only when it runs")),
        ("eval ./h.sh", ("`eval`, which runs other commands",)),
    ],
)
def test_what_cannot_be_seen_is_said(tmp_path: Path, command: str, unseen: tuple[str, ...]) -> None:
    put(tmp_path, "h.sh")
    seen = take_fingerprint(entry(tmp_path, command), about(tmp_path)).unseen
    assert tuple(text.replace(str(tmp_path), "HOME") for text in seen) == unseen


def test_the_fingerprint_is_that_of_the_same_thing_only(tmp_path: Path) -> None:
    put(tmp_path, "h.sh", "sub/inner.sh")
    one = entry(tmp_path, "sh $PWD/../project-file; sh ./h.sh")
    base = take_fingerprint(one, about(tmp_path)).fingerprint
    assert take_fingerprint(one, about(tmp_path)).fingerprint == base
    others = [
        entry(tmp_path, "sh ./h.sh"),
        entry(tmp_path, one.command, matcher="x"),
        entry(tmp_path, one.command, condition="x"),
        entry(tmp_path, one.command, env={"A": "1"}),
        entry(tmp_path, one.command, args=()),
        entry(tmp_path, one.command, shell="powershell"),
        entry(tmp_path, one.command, definition='{"timeout":1}'),
        entry(tmp_path / "elsewhere", one.command),
    ]
    prints = {take_fingerprint(other, about(tmp_path)).fingerprint for other in others}
    assert base not in prints and len(prints) == len(others)
    put(tmp_path, "h.sh")
    assert take_fingerprint(one, about(tmp_path)).fingerprint == base
    (tmp_path / "h.sh").write_text("#!/bin/sh \n")
    assert take_fingerprint(one, about(tmp_path)).fingerprint != base


def test_a_file_that_appears_makes_a_stranger_of_the_hook(tmp_path: Path) -> None:
    one = entry(tmp_path, "sh late.sh")
    facts = about(tmp_path)
    store = TrustStore(tmp_path / "trust.json")
    HookTrust(store, facts).judge([(one, take_fingerprint(one, facts))], accepted=True)
    trust = HookTrust(store, facts)
    assert trust.is_trusted(one) and trust.explain_revocation(one) == ""
    put(tmp_path, "late.sh")
    assert "late.sh changed after you trusted it" in trust.explain_revocation(one)
    assert not HookTrust(store, facts).is_trusted(one)


def test_a_touched_file_is_read_again_and_still_trusted(tmp_path: Path) -> None:
    put(tmp_path, "h.sh")
    one, facts, store = entry(tmp_path, "./h.sh"), about(tmp_path), TrustStore(tmp_path / "trust.json")
    HookTrust(store, facts).judge([(one, take_fingerprint(one, facts))], accepted=True)
    trust = HookTrust(store, facts)
    assert trust.is_trusted(one)
    put(tmp_path, "h.sh")
    assert trust.explain_revocation(one) == ""
    (tmp_path / "h.sh").unlink()
    assert "h.sh changed" in trust.explain_revocation(one)


def test_of_a_stranger_nothing_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "h.sh")
    one, facts, store = entry(tmp_path, "./h.sh"), about(tmp_path), TrustStore(tmp_path / "trust.json")
    HookTrust(store, facts).judge([(one, take_fingerprint(one, facts))], accepted=True)
    looked: list[HookEntry] = []

    def noting(entry: HookEntry, *more: Any) -> Fingerprint:
        looked.append(entry)
        return take_fingerprint(entry, *more)

    monkeypatch.setattr("cru.core.hooks.trust.store.take_fingerprint", noting)
    trust = HookTrust(store, facts)
    other = entry(tmp_path, "./h.sh 2")
    assert (
        not trust.is_trusted(other)
        and not trust.is_refused(other)
        and trust.describe_change(other) == ""
        and not looked
    )
    assert trust.is_trusted(one) and looked == [one]


def test_copies_are_kept_of_small_texts_and_go_when_nobody_needs_them(tmp_path: Path) -> None:
    put(tmp_path, "h.sh")
    (tmp_path / "big").write_text("x" * (LARGEST_COPY + 1))
    (tmp_path / "code").write_bytes(b"\0")
    one, facts, store = entry(tmp_path, "./h.sh big code"), about(tmp_path), TrustStore(tmp_path / "trust.json")
    HookTrust(store, facts).judge([(one, take_fingerprint(one, facts))], accepted=True)
    [copy] = (facts.home / "trust").iterdir()
    assert read_copy(facts.home, copy.name) == b"#!/bin/sh\n" and copy.stat().st_mode & 0o777 == 0o600
    assert store.forget_hooks(tmp_path) == 1
    os.utime(copy, (0, 0))
    other = entry(tmp_path, "true")
    HookTrust(store, facts).judge([(other, take_fingerprint(other, facts))], accepted=True)
    assert not copy.exists() and read_copy(facts.home, "../trust.json") is None


def test_hooks_and_files_share_trust_json(tmp_path: Path) -> None:
    put(tmp_path, "h.sh", "config.toml")
    entries, problems = read(tmp_path, config({"command": "./h.sh"}), "project")
    facts, store = about(tmp_path), TrustStore(tmp_path / "trust.json")
    assert not problems
    HookTrust(store, facts).judge([(entries[0], take_fingerprint(entries[0], facts))], accepted=True)
    store.trust(tmp_path / "config.toml")
    assert HookTrust(store, facts).is_trusted(entries[0]) and store.is_trusted(tmp_path / "config.toml")
    assert store.revoke(tmp_path / "config.toml")
    assert HookTrust(store, facts).is_trusted(entries[0])
    assert store.forget_hooks(tmp_path / "other") == 0 and store.forget_hooks(tmp_path) == 1
    assert not HookTrust(store, facts).is_trusted(entries[0])

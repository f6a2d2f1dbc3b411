"""Files that cru reads at a start, with contents that nobody writes by hand: no start hangs, breaks down, or shows a traceback."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kit import Done, HomeDir, Reply, cru, home, server

JSON_CONTENTS: dict[str, bytes] = {
    "deep lists": b'{"x": ' + b"[" * 990 + b"]" * 990 + b"}",
    "very deep lists": b'{"x": ' + b"[" * 60_000 + b"]" * 60_000 + b"}",
    "deep under a key that counts": b'{"mcpServers": {}, "hooks": ' + b'{"a": ' * 500 + b"1" + b"}" * 501,
    "a long number": b'{"x": ' + b"9" * 10_000 + b"}",
    "a large exponent": b'{"x": 1e999999999}',
    "keys twice": b'{"hooks": 1, "hooks": {}, "mcpServers": 1, "mcpServers": {}}',
    "lone surrogates": b'{"\\ud800": "\\udfff", "mcpServers": {"\\ud800": {}}, "hooks": {"\\ud800": []}}',
    "NUL in a text": b'{"mcpServers": {"\\u0000": {"command": "\\u0000"}}, "hooks": {"PreToolUse": [{"command": "\\u0000"}]}}',
    "another kind": b"[1]",
    "null": b"null",
    "null under keys": b'{"hooks": null, "mcpServers": null, "files": null, "always": null, "contexts": null, "projects": null}',
    "many": b'{"mcpServers": {' + b",".join(b'"s%d": {"command": "true"}' % n for n in range(15_000)) + b"}}",
}  # fmt: skip
TOML_CONTENTS: dict[str, bytes] = {
    "a deep key": b".".join([b"a"] * 50_000) + b" = 1",
    "a deep header": b"[" + b".".join([b"a"] * 50_000) + b"]",
    "many tables": b"".join(b"[t%d]\n" % n for n in range(60_000)),
    "as many tables as are read": b"".join(b"[t%d]\n" % n for n in range(1_800)),
    "as many keys as are read": b"".join(b"k%d = 1\n" % n for n in range(19_000)),
    "deep arrays": b"x = " + b"[" * 20_000 + b"]" * 20_000,
    "deep tables": b"x = " + b"{a = " * 990 + b"1" + b"}" * 990,
    "a long number": b"x = " + b"9" * 10_000,
    "a large exponent": b"x = 1e999999999",
    "keys twice": b"x = 1\nx = 2\n",
    "NUL": b'model = "a\\u0000b"\n',
    "rules without end": b"[permissions]\nallow = [" + b'"outside_sandbox:x",' * 15_000 + b"]\n",
}  # fmt: skip
YAML_CONTENTS: dict[str, bytes] = {
    "laughs": b"---\nname: a\ndescription: b\na: &a [x, x]\n"
    + b"".join(b"%c: &%c [*%c, *%c]\n" % (98 + n, 98 + n, 97 + n, 97 + n) for n in range(22))
    + b"---\nx\n",
    "merges": b"---\nname: a\ndescription: b\na: &a {x: 1}\n"
    + b"".join(b"%c: &%c {<<: [*%c, *%c]}\n" % (98 + n, 98 + n, 97 + n, 97 + n) for n in range(22))
    + b"---\nx\n",
    "a value in itself": b"---\nname: a\ndescription: &a [*a]\ntools: *a\n---\nx\n",
    "tags": b"---\nname: !!python/object/apply:os.system [true]\ndescription: !x y\n---\nx\n",
    "odd tags": b"---\nname: !!bool x\ndescription: !!timestamp x\n---\nx\n",
    "deep": b"---\nname: a\ndescription: " + b"[" * 3_000 + b"\n---\nx\n",
    "deep and long": b"---\nname: a\ndescription: " + b"[" * 60_000 + b"\n---\nx\n",
    "long numbers": b"---\nname: " + b"9" * 5_000 + b"\ndescription: 1e999999999\n---\nx\n",
    "a date that is none": b"---\nname: 2020-99-99\ndescription: 0000-00-00\n---\nx\n",
    "keys of every kind": b"---\n1: a\n[a]: b\n? {a: b}\n: c\nnull: d\nname: a\ndescription: b\n---\nx\n",
    "no end": b"---\n" * 100_000,
    "imports": b"@CLAUDE.md @AGENTS.md @GEMINI.md @./CLAUDE.md @.claude/CLAUDE.md\n" * 2_000,
}  # fmt: skip
ANY_CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "only a BOM": b"\xef\xbb\xbf",
    "UTF-16": b"\xff\xfe" + "{}\nx = 1\n".encode("utf-16-le"),
    "no UTF-8": b'{"a": "\xff"}\nx = "\xff"\n',
    "NUL bytes": b"\0" * 1000,
    "random bytes": bytes(range(256)) * 100,
    "a long line": b"a" * 3_000_000,
    "many lines": b"a\n" * 1_500_000,
}
PLACES: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a link to a pipe": lambda path: _link_to_pipe(path),
    "a link to nothing": lambda path: path.symlink_to("nothing/here"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "4 GiB": lambda path: _make_sparse(path),
}
KINDS = {".json": JSON_CONTENTS, ".toml": TOML_CONTENTS, ".md": YAML_CONTENTS, ".yaml": YAML_CONTENTS}


def _link_to_pipe(path: Path) -> None:
    """Not to a device: root can replace one, and a test that fails must not break the machine."""
    os.mkfifo(path.with_name(f"{path.name}.pipe"))
    path.symlink_to(f"{path.name}.pipe")


def _make_sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 4 << 30)


PROJECT = (
    ".cru/config.toml", ".cru/hooks.json", ".cru/plugins/a/plugin.yaml", ".cru/plugins/b.lua", ".cru/plugins/c.py", ".cru/agents/a.md",
    ".cru/commands/a.md", ".cru/skills/s/SKILL.md", ".claude/settings.json", ".claude/settings.local.json", ".claude/CLAUDE.md",
    ".claude/rules/a.md", ".claude/commands/b.md", ".claude/skills/s/SKILL.md", ".claude/agents/b.md", ".mcp.json", "crush.json",
    ".crush.json", ".gemini/settings.json", ".gemini/commands/a.toml", ".codex/config.toml", ".codex/hooks.json", "AGENTS.md", "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md", ".gitignore", ".env", "notes/a.md",
)  # fmt: skip
HOME = (
    ".cru/config.toml", ".cru/models.toml", ".cru/hooks.json", ".cru/mcp.json", ".cru/trust.json", ".cru/grants.json", ".cru/keys.json",
    ".cru/session.json", ".cru/state.json", ".cru/cache/packages.json", ".cru/cache/schemas.json", ".cru/cache/sandbox.json",
    ".cru/init.lua", ".cru/AGENTS.md", ".cru/agents/a.md", ".cru/commands/a.md", ".cru/plugins/a/plugin.yaml",
    ".cru/plugin-state/p/storage.json",
    ".cru/prompts/chibi.md",
    ".cru/contexts/default/context.jsonl", ".cru/contexts/default/context_meta.json", ".cru/contexts/default/local.toml",
    ".cru/contexts/default/plugin-state.json", ".cru/contexts/default/inbox.jsonl", ".cru/contexts/default/trace.jsonl",
    ".cru/contexts/default/journal.jsonl",
    ".claude.json", ".claude/settings.json", ".claude/CLAUDE.md", ".claude/skills/s/SKILL.md", ".codex/config.toml", ".codex/hooks.json",
    ".codex/AGENTS.md", ".gemini/settings.json", ".gemini/GEMINI.md", ".config/crush/crush.json", ".gitconfig",
)  # fmt: skip


def contents_of(name: str) -> dict[str, Callable[[Path], object]]:
    """Return what may stand in the place of a file, each with what puts it there."""
    table = ANY_CONTENTS | KINDS.get(Path(name).suffix, {})

    def writer(data: bytes) -> Callable[[Path], object]:
        return lambda path: path.write_bytes(data)

    places = dict(PLACES)
    if name.endswith(".jsonl"):  # a log may be large, and is read line by line
        del places["4 GiB"]
    return {kind: writer(data) for kind, data in table.items()} | places


def put(root: Path, name: str, make: Callable[[Path], object]) -> None:
    path = root / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)


ALL_KINDS = sorted({kind for name in PROJECT + HOME for kind in contents_of(name)})
LOG = 1 << 20
"""Bytes that a start may print at most about whatever is wrong."""
USUAL = (0, 1, 2, 5)
"""Exit statuses of a start that went on, or was refused with a sentence (5: no model is left in the settings)."""


def start_with(tmp_path: Path, plant: Callable[[HomeDir], object]) -> Done:
    with server([Reply("done")] * 3) as model:
        here = home(tmp_path, url=model.url)
        plant(here)
        return cru("go", home=here)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_strangers_files_stop_no_start(tmp_path: Path, kind: str) -> None:
    """All files of a project at once: the start goes on, and what guards is reported."""

    def plant(here: HomeDir) -> None:
        for name in PROJECT:
            if make := contents_of(name).get(kind):
                put(here.project, name, make)

    done = start_with(tmp_path, plant)
    assert (done.code, done.out) == (0, "done\n"), done.err[-2000:]
    assert "Traceback" not in done.err and len(done.err) < LOG
    if kind in ("very deep lists", "no UTF-8", "a folder", "a pipe", "UTF-16"):
        assert ".claude/settings.json" in done.err and "crush.json" in done.err
    if kind in ("a deep key", "many tables", "a long number", "a folder"):
        assert ".cru/config.toml" in done.err


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", HOME)
def test_a_broken_file_of_the_home_ends_no_start_without_a_sentence(tmp_path: Path, name: str) -> None:
    for number, (kind, make) in enumerate(contents_of(name).items()):
        (folder := tmp_path / str(number)).mkdir()
        done = start_with(folder, lambda here, make=make: put(here.path, name, make))  # type: ignore[misc]
        may_hold_workflow = name.endswith("default/plugin-state.json")  # one that may be running is not done: 3
        assert done.code in USUAL or (may_hold_workflow and done.code == 3), (kind, done.err[-2000:])
        assert "Traceback" not in done.err and len(done.err) < LOG, (kind, done.err[-2000:])
        assert done.code in (0, 5) or Path(name).name in done.err or "default" in done.err, (kind, done.err[-2000:])
        shutil.rmtree(folder)

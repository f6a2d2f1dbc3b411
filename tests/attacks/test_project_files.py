"""Files of a checkout that cru reads by itself (settings, guides, hooks, commands, skills, cards, notes): none of them stops it, eats
its memory, or brings along what lies outside of the project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Struct
from tests.attacks.playing import REFUSED, Played, play, rules
from tests.attacks.test_checkouts import put
from tests.kit import Call, Done, HomeDir, Reply, cru, home, server

SECRET = "the crown jewels"
FILES = (
    ".cru/config.toml", ".cru/hooks.json", ".cru/plugins/a", ".cru/plugins/b.lua", ".cru/plugins/c.py", ".cru/plugins/d/plugin.toml",
    ".cru/agents/a.md", ".cru/commands/a.md", ".claude/settings.json", ".claude/settings.local.json", ".claude/CLAUDE.md",
    ".claude/rules/a.md", ".claude/commands/b.md", ".claude/skills/s/SKILL.md", ".claude/agents/b.md", ".mcp.json", "crush.json",
    ".gemini/settings.json", ".codex/config.toml", ".codex/hooks.json", "AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", ".gitignore",
)  # fmt: skip
KINDS = ("pipe", "endless", "4 GiB", "loop", "secret")


class Started(Struct):
    """A run in a project in which all of these are of one kind."""

    done: Done
    sent: bytes
    results: list[str]


@pytest.fixture(scope="module", params=KINDS)
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Started]:
    def plant(here: HomeDir) -> None:
        (here.path / ".ssh").mkdir()
        (here.path / ".ssh/id").write_text(f"---\nname: s\ndescription: {SECRET}\n---\n{SECRET}\n")
        for name in FILES:
            file = here.project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if request.param == "secret":
                file.symlink_to(here.path / ".ssh/id")
            else:
                put(file, request.param)

    calls = [Call("grep", {"pattern": "crown"}), Call("glob", {"pattern": "**/*"}), Call("ls", {})]
    played = play(tmp_path_factory.mktemp("started"), calls, plant=plant)
    return request.param, Started(played.done, b"".join(request.raw for request in played.requests), played.results)


@pytest.mark.sample(30)
@pytest.mark.parametrize("name", FILES)
def test_what_stands_in_the_place_of_a_file_stops_nobody(started: tuple[str, Started], name: str) -> None:
    kind, run = started
    assert run.done.code == 0 and run.done.out == "done\n" and "Traceback" not in run.done.err
    assert SECRET.encode() not in run.sent and SECRET not in run.done.err
    assert run.results[0].startswith("(no matches)")
    must_be_told = (
        (".cru/config.toml", ".claude/settings.json", "crush.json", ".mcp.json")
        if kind != "secret"
        else (".cru/config.toml",)
    )
    assert name not in must_be_told or f"{name}" in run.done.err


# what brings other files along -------------------------------------------------------------------------------------------------------

OUTER = (
    "~/.ssh/id",
    "../outside/x",
    "/etc/passwd",
    "link",
    "way/id",
    "./a/../../outside/x",
    "{home}/.ssh/id",
    "~root/.ssh/id",
)


def _plant_outer(here: HomeDir) -> None:
    (here.path / ".ssh").mkdir()
    (here.path / ".ssh/id").write_text(SECRET)
    (here.project / "../outside").mkdir()
    (here.project / "../outside/x").write_text(SECRET)
    (here.project / "link").symlink_to("../outside/x")
    (here.project / "way").symlink_to(here.path / ".ssh")
    (here.project / "a").mkdir()


def _mentions(here: HomeDir) -> str:
    return " and ".join(f"@{path.replace('{home}', str(here.path))}" for path in OUTER)


ROADS = ("a guide", "a guide below", "a rule", "a command of the project", "piped text", "a message", "a file read")


@pytest.mark.sample(4)
@pytest.mark.parametrize("road", ROADS)
def test_a_mention_in_a_strangers_text_brings_nothing_from_outside(tmp_path: Path, road: str) -> None:
    with server([Reply(calls=[Call("read", {"file_path": "a/text.txt"})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        _plant_outer(here)
        text = _mentions(here)
        words, typed = ["go"], ""
        files = {
            "a guide": "CLAUDE.md",
            "a guide below": "a/CLAUDE.md",
            "a rule": ".claude/rules/x.md",
            "a command of the project": ".claude/commands/evil.md",
        }
        (here.project / "a/text.txt").write_text(text if road == "a file read" else "plain")
        if name := files.get(road):
            (here.project / name).parent.mkdir(parents=True, exist_ok=True)
            (here.project / name).write_text(f"See {text}.\n")
            (here.project / "CLAUDE.md").touch()
            words = ["/evil"] if "command" in road else words
        elif road == "piped text":
            typed = text
        elif road == "a message":
            here.context().mkdir(parents=True)
            line = {"id": "1", "timestamp": 1, "from": "other", "to": "default", "content": text}
            (here.context() / "inbox.jsonl").write_text(json.dumps(line) + "\n")
        done = cru(*words, home=here, input=typed or None)
        sent = b"".join(request.raw for request in model.requests)
    assert done.code == 0 and len(model.requests) == 2
    assert SECRET.encode() not in sent and b"root:x:0" not in sent


NOTES = {
    "vault_read": (
        "link", "link.md", "LINK", "dir/id", "../../home/.ssh/id", "/etc/passwd", "../x", "a/../../../home/.ssh/id", "pipe", "endless",
        "huge",
        "denied", "denied.md", "DENIED", "./denied", "notes/../denied", "..\\..\\home\\.ssh\\id", "~/.ssh/id", ".hidden", "a/./../denied",
        "x" * 300, "folder", "hard",
    ),
    "vault_write": (
        "link", "dir/new", "../../home/.ssh/new", "/tmp/evil", "../outside", "pipe", "endless", "denied", "~/.ssh/x",
        ".git/hooks/pre-commit",
        ".obsidian/app", "AGENTS", "CLAUDE.md", "folder/AGENTS", "x" * 300, "..\\evil", "Denied",
    ),
    "vault_links": ("link", "dir/id", "../../home/.ssh/id", "denied", "/etc/passwd"),
}  # fmt: skip


def _plant_notes(here: HomeDir) -> None:
    notes = here.project / "notes"
    (notes / "folder").mkdir(parents=True)
    (here.path / ".ssh").mkdir()
    for name in ("id", "id.md"):
        (here.path / ".ssh" / name).write_text(SECRET)
    (notes / "a.md").write_text("[[../../home/.ssh/id]] ![[/etc/passwd]] [x](../../home/.ssh/id.md) [[denied]]\n")
    (notes / "denied.md").write_text(SECRET)
    (notes / ".hidden.md").write_text(SECRET)
    (notes / "link.md").symlink_to(here.path / ".ssh/id.md")
    (notes / "dir").symlink_to(here.path / ".ssh")
    for name, kind in (("pipe", "pipe"), ("endless", "endless"), ("huge", "4 GiB")):
        put(notes / f"{name}.md", kind)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Played, dict[tuple[str, str], str]]:
    rows = [(tool, path) for tool, paths in NOTES.items() for path in paths]
    calls = [
        Call(tool, {"path": path, **({"content": "overwritten", "overwrite": True} if tool == "vault_write" else {})})
        for tool, path in rows
    ]
    config = '[vault]\npath = "notes"\ngrounding = 4000\n' + rules(
        deny=["read:notes/denied.md", "write:notes/denied.md"]
    )
    played = play(tmp_path_factory.mktemp("notes"), [*calls, Call("vault_search", {"query": "crown jewels"})], mode="auto", config=config,
                  plant=_plant_notes)  # fmt: skip
    return played, dict(zip(rows, played.results, strict=False))


@pytest.mark.parametrize(("tool", "path"), [(tool, path) for tool, paths in NOTES.items() for path in paths])
def test_a_note_leads_nowhere_else(notes: tuple[Played, dict[tuple[str, str], str]], tool: str, path: str) -> None:
    played, results = notes
    text = results[tool, path]
    assert SECRET not in text and not played.leaks(SECRET)
    refused = (
        "bad arguments",
        "is not a regular file",
        "is a binary file",
        "there is no note",
        "cannot",
        "is larger than",
        "must not",
        "not a note",
    )
    waits_for_nobody = (tool, path) == ("vault_write", "pipe")  # the pipe is replaced
    assert waits_for_nobody or text.startswith(REFUSED) or any(words in text for words in refused), text
    assert sorted(file.name for file in (played.here.path / ".ssh").iterdir()) == ["id", "id.md"]
    assert (played.here.project / "notes/denied.md").read_text() == SECRET and not Path("/tmp/evil.md").exists()


# conversations about other projects ---------------------------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("mode", "allow", "is_read"),
    [
        ("ask", [], False), ("auto", [], False), ("plan", [], False), ("trust", [], True), ("ask", ["read_context:theirs"], True),
        ("ask", ["read_context", "read"], False), ("auto", ["read_context:their*"], True), ("ask", ["read_context:mine"], False),
    ],
)  # fmt: skip
def test_a_conversation_about_another_project_needs_leave(
    tmp_path: Path, mode: str, allow: list[str], is_read: bool
) -> None:
    """Who has the model of one project obey must not get what was said about another."""
    calls = [
        Call("read_context", {"context_name": name}) for name in ("theirs", "THEIRS", "./theirs", "theirs ", "mine")
    ]
    with server([Reply(SECRET), Reply("mine"), Reply(calls=calls), Reply("done")]) as model:
        here = home(tmp_path, url=model.url, config=rules(allow=allow))
        other = here.path / "other"
        for folder in (other, here.project):
            (folder / ".git").mkdir(parents=True)
        assert cru("-C", "theirs", "what is the secret?", home=here, cwd=other).code == 0
        assert cru("-C", "mine", "hello", home=here).code == 0
        assert cru("--mode", mode, "-C", "mine", "go", home=here).code == 0
        sent = model.requests[3].raw
    assert (SECRET.encode() in sent) is is_read
    results = [str(entry["content"]) for entry in here.log("mine") if entry["entry_type"] == "tool_result"]
    assert len(results) == 5 and any('"name":"mine"' in text for text in results)
    assert is_read or any("a conversation about another project" in text for text in results)
    by_hand = cru("-P", "read_context", '{"context_name": "theirs"}', home=here)
    assert SECRET in by_hand.out  # the person reads what they like

from __future__ import annotations

from pathlib import Path

import pytest

from cru.core.base.values.messages import Span
from cru.core.conversations import ContextSettings
from cru.core.conversations.store import FileContext
from cru.core.turn.guides import GuideReader
from cru.core.turn.round import ModelReply, ReplyCall
from cru.core.turn.system_prompt import (
    GUIDE_LIMIT,
    GuidePlaces,
    Guides,
    GuideSettings,
    PromptSources,
    build_sections,
)


def spans(tmp_path: Path, username: str = "user", below: str = "") -> tuple[Span, ...]:
    folder = tmp_path / "home" / "contexts" / "main"
    folder.mkdir(parents=True, exist_ok=True)
    project = tmp_path / "project"
    (project / below).mkdir(parents=True, exist_ok=True)
    where = GuidePlaces(tmp_path / "home", tmp_path / "user", project, project / below)
    settings = GuideSettings()
    guides = Guides(where, settings, lambda: GuideReader(where, settings, lambda _: ""))
    places = PromptSources(where.home, where.root, where.cwd, where.user_home, "You are cru.", guides=guides)
    return build_sections(FileContext(folder, ContextSettings()), places, username, True)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_an_empty_home_gives_the_base_and_the_place(tmp_path: Path) -> None:
    found = spans(tmp_path)
    assert [(s.name, s.origin) for s in found] == [("base", "cru"), ("environment", "this process")]
    assert found[0].text == "You are cru."


def test_sections_stand_in_a_fixed_order_each_with_its_origin(tmp_path: Path) -> None:
    context = tmp_path / "home" / "contexts" / "main"
    for path, text in {
        context / "system_prompt.md": "Be kind.",
        context / "summary.md": "So far.",
        context / "goals.md": "Win.",
        context / "todos.md": "- [ ] sweep",
        tmp_path / "home" / "prompts" / "reflection.md": "I like tests.",
        tmp_path / "user" / "AGENTS.md": "user's",
        tmp_path / "home" / "CLAUDE.md": "home's",
        tmp_path / "project" / "AGENTS.md": "project's",
        tmp_path / "project" / "CLAUDE.md": "not this one",
        tmp_path / "project" / "src" / "CLAUDE.md": "folder's",
    }.items():
        put(path, text)
    found = spans(tmp_path, "ann", "src")
    names = ["base", *["guide"] * 4, "username", "reflection", "summary", "goals", "todos", "environment"]
    assert [s.name for s in found] == names
    assert [s.text.splitlines()[-1] for s in found[1:5]] == ["user's", "home's", "project's", "folder's"]
    assert found[4].origin == str(tmp_path / "project" / "src" / "CLAUDE.md")
    assert found[0].text == "Be kind." and "ann" in found[5].text
    assert found[9].text == "--- TODOS ---\n- [ ] sweep"


@pytest.mark.parametrize("name", ["cru.md", "chibi.md"])
def test_a_prompt_file_of_the_home_replaces_the_shipped_one(tmp_path: Path, name: str) -> None:
    put(tmp_path / "home" / "prompts" / name, "Mine.")
    assert spans(tmp_path)[0].text == "Mine."


def test_a_guide_that_is_too_long_or_cannot_be_read_says_so_in_its_place(tmp_path: Path) -> None:
    put(tmp_path / "project" / "AGENTS.md", "x" * (GUIDE_LIMIT + 1))
    (tmp_path / "user" / "AGENTS.md").mkdir(parents=True)
    _, user, project, _ = spans(tmp_path)
    assert "could not be read: Is a directory" in user.text
    assert f"is cut here, at {GUIDE_LIMIT} bytes" in project.text


@pytest.mark.parametrize(
    ("parts", "ids"),
    [
        ({0: ["a", "ls", "{}"], 1: ["b", "ls", "{}"]}, ["a", "b"]),
        ({0: ["a", "ls", "{}"], 1: ["a", "ls", "{}"]}, ["a", "made_1"]),
        ({0: ["", "ls", ""], 3: ["", "ls", ""]}, ["made_0", "made_3"]),
        ({1: ["b", "ls", ""], 0: ["a", "ls", ""]}, ["a", "b"]),
    ],
)
def test_calls_of_one_reply_have_ids_of_their_own_and_the_models_order(
    parts: dict[int, list[str]], ids: list[str]
) -> None:
    grown = {index: ReplyCall(call_id, name, [arguments]) for index, (call_id, name, arguments) in parts.items()}
    calls = ModelReply(parts=grown).calls("made")
    assert [c.id for c in calls] == ids
    assert all(c.arguments == "{}" for c in calls)

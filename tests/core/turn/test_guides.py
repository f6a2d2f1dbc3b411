"""Guides of folders, what they import, and what keeps a stranger's files from bringing anything else along."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec import Struct
from tests.kit.home import HomeDir, home
from tests.kit.run import cru

from cru.core.turn.guide_imports import find_imports, strip_comments
from cru.core.turn.guides import GuideReader
from cru.core.turn.system_prompt import GUIDE_LIMIT, GuidePlaces, Guides, GuideSettings


class Folders(Struct):
    """A user's home, cru's home in it, and a project."""

    base: Path
    settings: GuideSettings = GuideSettings()
    judge: Callable[[str], str] = lambda _: ""
    more: tuple[str, ...] = ()
    below: str = ""

    def put(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.user / name[2:] if name.startswith("~/") else self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    @property
    def user(self) -> Path:
        return self.base / "user"

    @property
    def project(self) -> Path:
        return self.base / "project"

    def guides(self) -> Guides:
        self.project.mkdir(exist_ok=True)
        places = GuidePlaces(self.user / ".cru", self.user, self.project, self.project / self.below)
        reader = GuideReader(places, self.settings, self.judge)
        return Guides(places, self.settings, lambda: reader, lambda: self.more)

    def texts(self) -> list[str]:
        """Below their headings."""
        return [span.text.partition("\n")[2] for span in self.guides().read_all()]

    def below_texts(self, file: str) -> list[str]:
        real = os.path.realpath(self.project / file)
        return [span.text.partition("\n")[2] for span in self.guides().read_below(real)]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


ORDER: list[tuple[dict[str, str], list[str]]] = [
    ({"AGENTS.md": "a", "CLAUDE.md": "c", "GEMINI.md": "g", "CRUSH.md": "r"}, ["a"]),
    ({"CLAUDE.md": "c", "GEMINI.md": "g"}, ["c"]),
    ({"GEMINI.md": "g", "CRUSH.md": "r"}, ["g"]),
    ({"CRUSH.md": "r"}, ["r"]),
    ({"AGENTS.md": " \n", "CLAUDE.md": "c"}, ["c"]),
    ({"AGENTS.md": "<!-- only this -->\n", "CLAUDE.md": "c"}, ["c"]),
    ({"AGENTS.md": "a", "CLAUDE.local.md": "l", ".claude/CLAUDE.md": "d", ".claude/rules/x.md": "r"}, ["a", "d", "r", "l"]),
    ({".claude/rules/b.md": "b", ".claude/rules/a/z.md": "z", ".claude/rules/c.txt": "no"}, ["z", "b"]),
    ({".claude/rules/b.md": "---\ndescription: of it\n---\nbody"}, ["body"]),
    ({"~/.claude/CLAUDE.md": "mine", "CLAUDE.md": "c"}, ["mine", "c"]),
    ({"~/AGENTS.md": "mine", "~/.cru/AGENTS.md": "for cru", "~/.codex/AGENTS.md": "no", "CLAUDE.md": "c"}, ["mine", "for cru", "c"]),
    ({"~/.codex/AGENTS.md": "codex", "~/.gemini/GEMINI.md": "gemini"}, ["codex"]),
    ({"~/.gemini/GEMINI.md": "gemini", "~/.config/crush/CRUSH.md": "crush"}, ["gemini"]),
    ({"sub/AGENTS.md": "below"}, []),
    ({}, []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "texts"), ORDER)
def test_the_first_guide_of_a_folder_counts_and_what_stands_beside_it(
    folders: Folders, files: dict[str, str], texts: list[str]
) -> None:
    folders.put(files)
    assert folders.texts() == texts


SETTINGS: list[tuple[GuideSettings, list[str]]] = [
    (GuideSettings(files=("CLAUDE.md", "AGENTS.md")), ["c @x.md", "x", "d", "l"]),
    (GuideSettings(files=("AGENTS.md",)), ["a"]),
    (GuideSettings(files=()), []),
    (GuideSettings(claude_folder=False), ["a"]),
    (GuideSettings(files=("CLAUDE.md",), imports=False), ["c @x.md", "d", "l"]),
]


@pytest.mark.parametrize(("settings", "texts"), SETTINGS)
def test_each_of_it_can_be_switched_off(folders: Folders, settings: GuideSettings, texts: list[str]) -> None:
    folders.put(
        {"AGENTS.md": "a", "CLAUDE.md": "c @x.md", "x.md": "x", ".claude/CLAUDE.md": "d", "CLAUDE.local.md": "l"}
    )
    folders.settings = settings
    assert folders.texts() == texts


def test_names_of_other_programs_count_behind_ours(folders: Folders) -> None:
    folders.put({"CONTEXT.md": "context"})
    assert folders.texts() == []
    folders.more = ("CONTEXT.md",)
    assert folders.texts() == ["context"]


IMPORTS: list[tuple[str, list[str]]] = [
    ("@a.md", ["a.md"]),
    ("see @a.md and @b/c.md", ["a.md", "b/c.md"]),
    ("@./a.md @~/b.md @/c.md @../d.md", ["./a.md", "~/b.md", "/c.md", "../d.md"]),
    ("@a\\ b.md", ["a b.md"]),
    ("@a.md#part @a.md", ["a.md"]),
    ("- @a.md\n1. @b.md\n> @c.md\n# @d.md\n| @e.md |", ["a.md", "b.md", "c.md", "d.md", "e.md"]),
    ("**@a.md**", ["a.md"]),
    ("- item\n\n    @a.md", ["a.md"]),
    ("text\n    @a.md", ["a.md"]),
    ("text\n\n    @a.md", []),
    ("me@a.md (@b.md) \"@c.md\" '@d.md' [@e.md]", []),
    ("`@a.md` ``@b.md ` @c.md`` @d.md", ["d.md"]),
    ("`a @a.md @b.md", ["a.md", "b.md"]),
    ("`\n\n@a.md `", ["a.md"]),
    ("```\n@a.md\n```\n@b.md", ["b.md"]),
    ("~~~~\n@a.md\n~~~\n@b.md\n~~~~\n@c.md", ["c.md"]),
    ("```\n@a.md", []),
    ("``` x`y\n@a.md", ["a.md"]),
    ("@@a.md @#a @ a @%x @/ @", []),
]


@pytest.mark.parametrize(("text", "paths"), IMPORTS)
def test_what_is_an_import(text: str, paths: list[str]) -> None:
    assert find_imports(text) == paths


COMMENTS = [
    ("a\n<!-- b -->\nc", "a\nc"),
    ("a\n<!-- b\n\nd -->\nc", "a\nc"),
    ("a <!-- b -->\nc", "a <!-- b -->\nc"),
    ("<!-- b --> rest\nc", " rest\nc"),
    ("```\n<!-- b -->\n```\nc", "```\n<!-- b -->\n```\nc"),
    ("a\n<!-- never closed\nc", "a"),
    ("a", "a"),
]


@pytest.mark.parametrize(("text", "kept"), COMMENTS)
def test_comments_are_for_people(text: str, kept: str) -> None:
    assert strip_comments(text) == kept


def test_the_work_for_a_text_of_backticks_grows_with_its_length() -> None:
    text = " ".join("`" * (number % 300 + 1) for number in range(3000)) + " @a.md"
    assert find_imports(text) in ([], ["a.md"])
    assert find_imports("`" + "a` " * 20_000 + "@b.md") == ["b.md"]


def test_files_that_import_one_another_end(folders: Folders) -> None:
    folders.put({"CLAUDE.md": "top @a.md", "a.md": "a @b.md @CLAUDE.md", "b.md": "b @a.md @b.md"})
    assert folders.texts() == ["top @a.md", "a @b.md @CLAUDE.md", "b @a.md @b.md"]


def test_what_may_not_be_imported_says_so_in_its_place(folders: Folders) -> None:
    (folders.base / "outside.md").write_text("OUTSIDE")
    folders.put({"CLAUDE.md": "@../outside.md @in.md @link.md @no.md @binary.md", "in.md": "fine", "no.md": "NO"})
    (folders.base / "other.md").write_text("OUTSIDE")
    (folders.project / "link.md").symlink_to("../other.md")
    (folders.project / "binary.md").write_bytes(b"PNG\0\1")
    folders.judge = lambda path: "a rule" if path.endswith("/no.md") else ""
    texts = folders.texts()[1:]
    assert texts == [
        "[@../outside.md leads out of the project and is not imported]",
        "fine",
        "[@link.md leads out of the project and is not imported]",
        "[@no.md is not imported: a rule]",
        "[@binary.md is not imported: it is no text]",
    ]


def test_imports_are_bounded(folders: Folders) -> None:
    names = [f"{number}.md" for number in range(8)]
    folders.put(
        {"CLAUDE.md": " ".join(f"@{name}" for name in names), **{name: name + "x" * GUIDE_LIMIT for name in names}}
    )
    texts = folders.texts()
    assert sum(map(len, texts)) < 5 * GUIDE_LIMIT
    assert "the guides import more than" in texts[-1]


def test_a_guide_of_10_mb_a_pipe_and_links_in_a_circle_keep_nobody_waiting(folders: Folders) -> None:
    folders.put({"CLAUDE.md": "x" * 10_000_000, "sub/x": ""})
    os.mkfifo(folders.project / "CLAUDE.local.md")
    (folders.project / ".claude").mkdir()
    (folders.project / ".claude" / "rules").symlink_to("rules")
    os.mkfifo(folders.project / "sub" / "AGENTS.md")
    texts = folders.texts()
    assert len(texts[0]) < GUIDE_LIMIT + 200 and "is cut here" in texts[0]
    assert texts[1:] == [f"[{folders.project}/CLAUDE.local.md is no file and is not read]"]
    assert folders.below_texts("sub/x") == [f"[{folders.project}/sub/AGENTS.md is no file and is not read]"]


def test_a_folder_of_a_project_that_leads_out_of_it_is_not_read(folders: Folders) -> None:
    folders.put({"~/other/CLAUDE.md": "NOT THIS", "~/other/rules/a.md": "NOR THIS", "x.md": ""})
    (folders.project / ".claude").symlink_to(folders.user / "other")
    texts = folders.texts()
    assert len(texts) == 2 and all("leads out of the project" in text for text in texts)


BELOW: list[tuple[str, list[str]]] = [
    ("sub/f.txt", ["sub", "local"]),
    ("sub/deep/f.txt", ["sub", "local", "deep @x.md", "x"]),
    ("sub/f.py", ["sub", "local", "py"]),
    ("f.py", ["py"]),
    ("f.txt", []),
    ("f.c", ["mine for c"]),
    ("../user/AGENTS.md", []),
]


@pytest.mark.parametrize(("file", "texts"), BELOW)
def test_what_goes_along_with_a_file(folders: Folders, file: str, texts: list[str]) -> None:
    folders.put(
        {
            "AGENTS.md": "top", "sub/CLAUDE.md": "sub", "sub/CLAUDE.local.md": "local", "sub/deep/AGENTS.md": "deep @x.md",
            "sub/deep/x.md": "x", ".claude/rules/py.md": "---\npaths: '*.{py,pyi}, x/**'\n---\npy", "~/AGENTS.md": "mine",
            "~/.claude/rules/c.md": "---\npaths: '**/*.c'\n---\nmine for c",
        }
    )  # fmt: skip
    assert folders.below_texts(file) == texts
    folders.settings = GuideSettings(subfolders=False)
    assert folders.below_texts(file) == []


def test_where_the_person_stands_is_in_the_prompt_already(folders: Folders) -> None:
    folders.put({"sub/AGENTS.md": "sub", "sub/deep/AGENTS.md": "deep"})
    folders.below = "sub"
    assert folders.texts() == ["sub"] and folders.below_texts("sub/deep/f") == ["deep"]


@pytest.mark.parametrize(
    ("front", "mark"),
    [("a: 1\n b: 2", "cannot be read"), ("paths: 3", "bad `paths`"), (f"paths: '{'{a,b}' * 12}'", "`paths`: ")],
)
def test_a_rule_that_cannot_be_read_says_so(folders: Folders, front: str, mark: str) -> None:
    folders.put({".claude/rules/a.md": f"---\n{front}\n---\nbody"})
    [text] = folders.texts()
    assert "body" in text and mark in text


def test_nothing_is_loaded_where_there_are_no_guides(folders: Folders) -> None:
    def load() -> GuideReader:
        raise AssertionError("there is nothing to read")

    folders.project.mkdir()
    places = GuidePlaces(folders.user / ".cru", folders.user, folders.project, folders.project)
    guides = Guides(places, GuideSettings(), load)
    assert not list(guides.read_all()) and not list(guides.read_below(str(folders.project / "a" / "b")))


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    (tmp_path / "model.txt").write_text(
        'call: read {"file_path": "sub/f.txt"}\n---\ncall: read {"file_path": "sub/f.txt"}\n---\ntext: first\n---\n'
        'call: read {"file_path": "sub/f.txt"}\n---\ntext: second\n'
    )
    place = home(tmp_path, config=f'model = "scripted:{tmp_path}/model.txt"\n')
    (place.project / "sub").mkdir()
    (place.project / "sub" / "f.txt").write_text("content")
    return place


def results(here: HomeDir) -> list[str]:
    return [entry["content"] for entry in here.log() if entry["entry_type"] == "tool_result"]


def test_a_guide_below_goes_along_once_a_conversation_and_again_after_an_anchor(here: HomeDir) -> None:
    (here.project / "sub" / "AGENTS.md").write_text("guide below")
    assert cru("hello", home=here).code == 0
    assert ["guide below" in text for text in results(here)] == [True, False]
    (here.project.parent / "model.txt").write_text(
        'loop: yes\n---\ncall: read {"file_path": "sub/f.txt"}\n---\ntext: again\n'
    )
    assert cru("hello again", home=here).code == 0
    assert "guide below" not in results(here)[-1]
    assert cru("-a", home=here).code == 0 and cru("hello anew", home=here).code == 0
    assert "guide below" in results(here)[-1]


def test_protected_places_and_what_a_rule_denies_are_never_imported(here: HomeDir) -> None:
    (here.path / ".ssh").mkdir()
    (here.path / ".ssh" / "id_rsa").write_text("PRIVATE KEY")
    (here.path / "AGENTS.md").write_text("mine @.ssh/id_rsa @own.md")
    (here.path / "own.md").write_text("own text")
    (here.project / "CLAUDE.md").write_text("theirs @.env @/etc/passwd @~/.ssh/id_rsa")
    (here.project / ".env").write_text("SECRET=1")
    here.configure('mode = "trust"\n[permissions]\ndeny = ["read:.env"]\n', url="http://127.0.0.1:9/v1")
    (here.project / ".gemini").mkdir()
    (here.project / ".gemini" / "settings.json").write_text('{"context": {"fileName": ["NOTES.md", "../x"]}} // words')
    run = cru("trace", "--next", "--json", home=here)
    assert run.code == 0, run.err
    guides = {Path(row["origin"]).name: row["bytes"] for row in json.loads(run.out) if row["name"] == "guide"}
    assert list(guides) == ["AGENTS.md", "id_rsa", "own.md", "CLAUDE.md", ".env", "passwd"]

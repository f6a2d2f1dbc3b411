"""The files that the chat offers behind `@`: which, in which order, and what is shown while the list is not complete."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from tests.kit import HomeDir, Reply, pty, server, wait_until

from cru.core.turn.session import Session
from cru.faces.cli.chat import completion, project_files
from cru.faces.cli.chat.project_files import NameReader, ProjectFiles

MANY = 200_000


def made(names: Sequence[str], *gates: threading.Event) -> Callable[[Path], NameReader]:
    """Make readers of these names; in the middle of them each reader waits for the next of the gates."""
    left = list(gates)

    class Made(NameReader):
        def read(self) -> None:
            half = len(names) // 2
            for name in names[:half]:
                self._add(name)
            if left:
                left.pop(0).wait()
            for name in names[half:]:
                self._add(name)
            self.done.set()

    return Made


def search(names: Sequence[str], characters: str, limit: int = 50) -> list[str]:
    return ProjectFiles(Path("/nowhere"), made(names)).matching(characters, limit).names


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing depends on how fast the machine is."""
    monkeypatch.setattr(project_files, "PATIENCE", 60.0)


@pytest.mark.parametrize(
    ("characters", "expected"),
    [
        ("", ["src/engine/leg.py", "src/legend.md", "a leg.txt", "Leg", "legs/x", "ab/cd.e"]),
        ("leg", ["Leg", "src/legend.md", "src/engine/leg.py", "a leg.txt", "legs/x"]),
        ("LEG.", ["src/engine/leg.py", "a leg.txt", "src/legend.md"]),
        ("gs/", ["legs/x"]),
        ("engl", ["src/engine/leg.py"]),
        ("acd", ["ab/cd.e"]),
        ("a l", ["a leg.txt"]),
        ("e.d", ["src/legend.md"]),
        ("zz", []),
        ("[^]", []),
    ],
)
def test_the_best_files_come_first(characters: str, expected: list[str]) -> None:
    names = ["src/engine/leg.py", "src/legend.md", "a leg.txt", "Leg", "legs/x", "ab/cd.e"]
    assert search(names, characters) == expected


@pytest.mark.slow
def test_every_one_of_many_files_is_found_and_the_best_of_them_first() -> None:
    names = [f"packages/module{number // 100}/source/file{number}.py" for number in range(MANY)]
    names[-1] = "packages/packages"
    files = ProjectFiles(Path("/nowhere"), made(names))
    for characters, expected in {
        "file199998.": names[-2],
        "m1999f199998": names[-2],
        "module0/source/file7.": names[7],
        "packages": names[-1],
    }.items():
        assert files.matching(characters, 50).names[0] == expected, characters
    assert files.matching("py", 50).note == "more files match" and not files.matching("file199998.py", 50).note


def test_characters_in_order_are_looked_for_in_linear_time() -> None:
    names = ["a" * 4_000 + str(number) for number in range(20)]
    assert search(names, "a" * 40 + "b") == []


def test_what_is_read_so_far_is_offered_and_the_menu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    files = ProjectFiles(Path("/nowhere"), made([f"file{number}" for number in range(8)], gate))
    monkeypatch.setattr(project_files, "PATIENCE", 0.0)
    matches = files.matching("file", 3)
    wait_until(lambda: files.matching("file", 3).note == "more files match; still reading, 4 files so far")
    assert files.is_reading and files.matching("file6", 3).names == []
    gate.set()
    wait_until(lambda: not files.is_reading)
    matches = files.matching("file6", 3)
    assert (matches.names, matches.note) == (["file6"], "")


def test_a_complete_list_is_used_until_a_newer_one_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "FRESH", -1.0)
    names, gate, open_gate = ["file1", "file2"], threading.Event(), threading.Event()
    open_gate.set()
    files = ProjectFiles(Path("/nowhere"), made(names, open_gate, gate))
    assert files.matching("file", 9).names == ["file1", "file2"]
    names.append("file3")
    monkeypatch.setattr(project_files, "PATIENCE", 0.0)
    matches = files.matching("file", 9)
    assert (matches.names, matches.note) == (["file1", "file2"], "") and files.is_reading
    gate.set()
    wait_until(lambda: not files.is_reading)
    monkeypatch.setattr(project_files, "PATIENCE", 60.0)
    assert files.matching("file", 9).names == ["file1", "file2", "file3"]


@pytest.mark.parametrize(("name", "value"), [("MOST", 2), ("READING", -1.0)])
def test_a_list_that_is_too_long_or_takes_too_long_says_that_it_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    for folder in "abc":
        (tmp_path / folder).mkdir()
        for number in "12":
            (tmp_path / folder / f"file{number}").touch()
    assert ProjectFiles(tmp_path).matching("file", 9).note == ""
    monkeypatch.setattr(project_files, name, value)
    matches = ProjectFiles(tmp_path).matching("file", 9)
    assert matches.note == f"only the first {len(matches.names)} files were read" and len(matches.names) < 6


@pytest.mark.parametrize(("is_choosing", "offered"), [(False, ["file1", "file2"]), (True, ["file1"])])
def test_the_menu_is_renewed_once_all_is_read_unless_a_file_is_being_chosen(
    monkeypatch: pytest.MonkeyPatch, is_choosing: bool, offered: list[str]
) -> None:
    monkeypatch.setattr(project_files, "PATIENCE", 0.0)
    gate = threading.Event()
    completer = completion.ChatCompleter(
        cast(Session, SimpleNamespace(parts=SimpleNamespace(place=SimpleNamespace(root=Path("/nowhere")))))
    )
    completer._files = ProjectFiles(Path("/nowhere"), made(["file1", "file2"], gate))
    buffer = Buffer(completer=completer)
    monkeypatch.setattr(completion, "get_app", lambda: SimpleNamespace(current_buffer=buffer))

    def names() -> list[str]:
        return (
            [] if buffer.complete_state is None else [item.display_text for item in buffer.complete_state.completions]
        )

    async def until(test: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not test():
                await asyncio.sleep(0)

    async def run() -> None:
        buffer.document = Document("see @fi", 7)
        while names() != ["file1"]:  # nothing may have been read yet
            buffer.cancel_completion()
            buffer.start_completion()
            await until(lambda: bool(names()))
        assert buffer.complete_state is not None
        assert "still reading" in buffer.complete_state.completions[0].display_meta_text
        await until(lambda: completer._is_waiting)
        if is_choosing:
            buffer.go_to_completion(0)
        gate.set()
        await until(lambda: not completer._is_waiting and names() == offered)

    asyncio.run(run())


def test_the_menu_shows_that_more_files_match(home: HomeDir) -> None:
    for number in range(60):
        (home.project / f"file{number}").touch()
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("read @file")
            wait_until(lambda: "… more files match" in terminal.screen())
            terminal.send("5")
            wait_until(lambda: "… more" not in terminal.screen() and "file50" in terminal.screen())
            terminal.key("tab")
            terminal.line("")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert [e["content"] for e in home.log() if e.get("role") == "user"] == ["read @file5"]

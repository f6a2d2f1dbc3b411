"""/vault: what it shows, and what it refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.core.turn.support import World
from tests.features.vault.support import write_notes
from tests.kit import cru, home

from cru.core.base.values.errors import CruError
from cru.core.events.stream import CommandSaid

NOTES = {
    "Home.md": "# Home\nSee [[Retry policy]] and [[Nowhere]].\n",
    "plans/Retry policy.md": "Try again with a growing pause. #net\n",
    "Alone.md": "nobody \x1b]0;owned\x07 here\n",
}


def typed(world: World, text: str) -> str:
    """What was shown after this was typed."""

    async def run() -> None:
        world.session.submit(text)
        await world.session.run()
        await world.session.close()

    asyncio.run(run())
    return world.of(CommandSaid)[-1].text


def vault_world(tmp_path: Path, notes: dict[str, str] = NOTES) -> World:
    write_notes(tmp_path / "notes", notes)
    return World(tmp_path, "loop: yes\ntext: ok\n", settings={"vault": {"path": str(tmp_path / "notes")}})


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("", "notes  {}/notes\n3 notes, 1 links, 1 links to nothing, 1 tags, 0 tasks"),
        ("search growing pause", "plans/Retry policy.md\n    Try again with a **growing** **pause**. #net"),
        ("search #net", "plans/Retry policy.md"),
        ("search zeppelin", "no note has that"),
        ("read retry policy", "plans/Retry policy.md\n\nTry again with a growing pause. #net"),
        ("read Alone", "Alone.md\n\nnobody \\x1b]0;owned\\x07 here"),
        ("links home", "Home.md\n  -> plans/Retry policy.md\n  -> Nowhere  (line 2: there is no such note)"),
        ("links Retry policy", "plans/Retry policy.md\n  <- Home.md"),
        ("links Alone", "Alone.md\n  no links"),
    ],
)
def test_what_is_shown(tmp_path: Path, words: str, shown: str) -> None:
    assert typed(vault_world(tmp_path), f"/vault {words}".strip()).startswith(shown.format(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ("serach x", "/vault has no `serach`", "did you mean `search`?"),
        ("frobnicate", "/vault has no `frobnicate`", "it has search, read, links"),
        ("search", "/vault search needs words", ""),
        ("read  ", "/vault read needs a note", ""),
        ("read Hom", "there is no note 'Hom'", "did you mean `Home`?"),
        ('search "open', "the quotation mark at column 1 is not closed", ""),
    ],
)
def test_what_does_not_fit_is_told_with_the_next_step(tmp_path: Path, words: str, message: str, hint: str) -> None:
    with pytest.raises(CruError) as caught:
        typed(vault_world(tmp_path), f"/vault {words}")
    assert message in caught.value.message and hint in caught.value.hint


def test_problems_are_shown_and_counted(tmp_path: Path) -> None:
    broken = {f"{number}.md": "---\n: [\n---\n" for number in range(7)}
    shown = typed(vault_world(tmp_path, broken), "/vault").splitlines()
    assert len([line for line in shown if line.startswith("problem: ")]) == 5 and "… and 2 more" in shown[-1]


def test_without_a_vault_the_next_step_is_told(tmp_path: Path) -> None:
    assert "cru vault init" in typed(World(tmp_path, "loop: yes\ntext: ok\n"), "/vault search x")


def test_the_command_line_takes_it_and_nothing_reaches_the_model(tmp_path: Path) -> None:
    here = home(tmp_path)
    write_notes(here.path / "notes", NOTES)
    here.configure(f'model = "scripted:/nowhere"\n[vault]\npath = "{here.path}/notes"\n')
    done = cru("/vault search growing", home=here)
    assert (done.code, done.out.splitlines()[0], done.err) == (0, "plans/Retry policy.md", "")
    assert cru("/vault read x", home=here).code != 0
    assert "/vault [search words | read note | links note]" in cru("/help vault", home=here).out

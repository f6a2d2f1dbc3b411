"""Agent cards: what counts of a file, and that a stranger's files can neither stop nor slow a start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cru.permissions.trust import TrustStore
from cru.tasks import BadCard, CardOrigin, CardPlaces, NoSuchAgent
from cru.tasks.cards import AgentCard, parse_card
from cru.tasks.discovery import describe_cards, load_cards


def card_of(head: str) -> AgentCard:
    return parse_card(f"---\nname: x\ndescription: d\n{head}\n---\nGo.\n", None, CardOrigin.USER, "x")


@pytest.fixture
def places(tmp_path: Path) -> CardPlaces:
    (tmp_path / "project" / ".cru" / "agents").mkdir(parents=True)
    return CardPlaces(tmp_path / "home" / ".cru", tmp_path / "home", tmp_path / "project")


def agents_of(places: CardPlaces) -> Path:
    return places.root / ".cru" / "agents"


HOSTILE = {
    "a value that does not fit its tag": "color: !!bool x",
    "half a character": 'description: "\\ud800"',
    "a number without end": "fuel: 0x" + "f" * 6000,
    "a time that is no number": "timeout: .nan",
    "a key that is no text": "? 0x" + "f" * 6000 + "\n: 1",
    "merge keys that multiply": "a0: &a0 {x: 1}\n"
    + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 30)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strangers_card_keeps_nobody_from_starting(name: str, places: CardPlaces) -> None:
    (agents_of(places) / "bad.md").write_text(f"---\ndescription: d\n{HOSTILE[name]}\n---\nGo.\n")
    assert describe_cards(places) == ""
    cards = load_cards(places)
    untrusted, problems = cards.read_untrusted()
    assert len(untrusted) + len(problems) == 1
    with pytest.raises(NoSuchAgent):
        cards.find("bad")


def test_cards_that_await_trust_are_not_even_parsed_at_a_start(
    places: CardPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = agents_of(places) / "a.md"
    file.write_text("---\ndescription: d\n---\nGo.\n")
    parsed: list[Path | None] = []

    def note(text: str, path: Path | None, origin: CardOrigin, name: str) -> AgentCard:
        parsed.append(path)
        return parse_card(text, path, origin, name)

    monkeypatch.setattr("cru.tasks.discovery.parse_card", note)
    describe_cards(places)
    assert file not in parsed
    TrustStore(places.home / "trust.json").trust(file)
    assert describe_cards(places) == "a: d" and file in parsed


def test_a_folder_of_cards_that_leads_out_of_the_project_is_not_looked_through(
    places: CardPlaces, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("---\ndescription: d\n---\nGo.\n")
    agents_of(places).rmdir()
    agents_of(places).symlink_to(outside)
    cards = load_cards(places)
    assert cards.problems == [f"{agents_of(places)} leads out of the project and is not read"]
    assert not cards.awaiting_trust


def test_a_pipe_and_a_file_that_is_too_large_are_told_and_not_read(places: CardPlaces) -> None:
    os.mkfifo(agents_of(places) / "a.md")
    with open(agents_of(places) / "b.md", "wb") as file:
        file.truncate(1 << 40)
    pipe, large = load_cards(places).problems
    assert "not a regular file" in pipe and "too large for a card" in large


def test_of_two_keys_for_one_thing_the_stricter_counts() -> None:
    card = card_of("disallowedTools: [Bash]\ndenied_tools: [write]\npermissionMode: bypassPermissions\nmode: plan")
    allows = card.narrowed_to(())
    assert [name for name in ("bash", "write", "read") if allows(name)] == ["read"]
    assert card.mode == "plan"


@pytest.mark.parametrize("head", ["timeout: .nan", "timeout: -1", "fuel: -1", "fuel: 0x" + "f" * 6000, "mode: plann"])
def test_a_limit_or_mode_that_is_none_is_an_error(head: str) -> None:
    with pytest.raises(BadCard):
        card_of(head)


def test_tools_are_known_in_capitals_and_misspelt_ones_are_told() -> None:
    card = card_of("tools: BASH, read, mine\ndenied_tools: [Wriet, 'e*']")
    assert card.tools == ("bash", "read", "mine")
    assert card.problems == ("x: there is no tool `Wriet` (did you mean `write`?)",)

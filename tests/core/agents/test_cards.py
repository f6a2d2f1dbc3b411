"""Agent cards: what counts of a file, and that a stranger's files can neither stop nor slow a start."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cru.core.agents import BadCard, CardOrigin, CardPlaces, NoSuchAgent
from cru.core.agents.cards import AgentCard, parse_card
from cru.core.agents.discovery import CardState, describe_cards, list_notices, load_cards
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.hooks.dialects import judges_calls


def card_of(head: str) -> AgentCard:
    return parse_card(f"---\nname: x\ndescription: d\n{head}\n---\nGo.\n", None, CardOrigin.USER, "x", judges_calls)


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
    (file,) = [file for file in cards.read_all() if file.state is CardState.AWAITING]
    assert (file.card is None) == bool(file.faults)
    with pytest.raises(NoSuchAgent):
        cards.find("bad")


def test_cards_that_await_trust_are_not_even_parsed_at_a_start(
    places: CardPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = agents_of(places) / "a.md"
    file.write_text("---\ndescription: d\n---\nGo.\n")
    parsed: list[Path | None] = []

    def note(text: str, path: Path | None, origin: CardOrigin, name: str, judges: Callable[[str], bool]) -> AgentCard:
        parsed.append(path)
        return parse_card(text, path, origin, name, judges)

    monkeypatch.setattr("cru.core.agents.discovery.parse_card", note)
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
    assert cards.problems == (f"{agents_of(places)} leads out of the project and is not read",)
    assert {file.origin for file in cards.files} == {CardOrigin.BUNDLED}


def test_a_pipe_and_a_file_that_is_too_large_are_told_and_not_read(places: CardPlaces) -> None:
    os.mkfifo(agents_of(places) / "a.md")
    with open(agents_of(places) / "b.md", "wb") as file:
        file.truncate(1 << 40)
    pipe, large = load_cards(places).problems
    assert "not a regular file" in pipe and "too large for a card" in large


def test_of_two_keys_for_one_thing_the_stricter_counts() -> None:
    card = card_of("disallowedTools: [Bash]\ndenied_tools: [write]\npermissionMode: bypassPermissions\nmode: plan")
    allows = card.narrowed_to(None)
    assert [name for name in ("bash", "write", "read") if allows(name)] == ["read"]
    assert card.mode == "plan"


@pytest.mark.parametrize("head", ["timeout: .nan", "timeout: -1", "fuel: -1", "fuel: 0x" + "f" * 6000, "mode: plann"])
def test_a_limit_or_mode_that_is_none_is_an_error(head: str) -> None:
    with pytest.raises(BadCard):
        card_of(head)


def test_tools_are_known_in_capitals_and_misspelt_ones_are_told() -> None:
    card = card_of("tools: BASH, read, mine\ndenied_tools: [Wriet, 'e*']")
    assert card.tools == ("bash", "read", "mine")
    assert card.misspelt == ("x:5: there is no tool `Wriet` (did you mean `write`?)",)


def test_all_that_is_wrong_with_a_card_is_told_at_once_in_plain_words() -> None:
    with pytest.raises(BadCard) as caught:
        card_of(
            "tools: read, bsh\nmode: asc\nfuel: many\ntemprature: 3\ntemperature: 5\nisolation: worktre\ntimeout: -1"
        )
    assert caught.value.faults == (
        "x:6: fuel: expected a whole number, got text",
        "x:8: temperature: expected a number of at most 2.0",
        "x:9: isolation: `worktre` is none: it may be worktree or none",
        "x:10: timeout: expected a number of at least 0.0",
        "x:5: unknown mode `asc` (did you mean `ask`?)",
        "x:7: unknown key `temprature` (did you mean `temperature`?)",
        "x:4: there is no tool `bsh` (did you mean `bash`?)",
    )


def test_a_card_whose_tools_do_not_exist_cannot_be_used() -> None:
    with pytest.raises(BadCard) as caught:
        card_of("tools: bsh, raed")
    assert caught.value.faults[-1] == "x:4: `tools` names no tool that there is, and so the agent would have none"
    assert "x:4: there is no tool `raed` (did you mean `read`?)" in caught.value.faults


CLAUDE_READS = {
    "a colon in the text": ("description: Use this agent: it reviews", "Use this agent: it reviews"),
    "examples in one line": (
        r'description: Use it when … Examples: <example>user: "Go" assistant: "I\'ll"</example>',
        r'Use it when … Examples: <example>user: "Go" assistant: "I\'ll"</example>',
    ),
    "a mark at the beginning": ("description: @team: `quick` look", "@team: `quick` look"),
    "a backslash": ("description: C:\\dir: there", "C:\\dir: there"),
    "carriage returns": ("description: a: b\r", "a: b"),
    "a list in brackets that is none": ("description: [old] Use it: now", "[old] Use it: now"),
}


@pytest.mark.parametrize("name", CLAUDE_READS)
def test_what_claude_code_reads_is_read(name: str) -> None:
    line, text = CLAUDE_READS[name]
    card = parse_card(
        f"---\nname: x\n{line}\ntools: Read, Bash(git *)\nmodel: Inherit\n---\nGo.\n", None, CardOrigin.USER, "x"
    )
    assert card.description == text and card.model == ""
    assert card.tools == ("read", "ls", "bash", "task_output", "task_cancel") and card.problems == ()


def test_lines_that_are_indented_with_tabs_are_read() -> None:
    card = parse_card("---\ndescription: d\ntools:\n\t- Read\n---\n", None, CardOrigin.USER, "x")
    assert card.tools == ("read", "ls")


def test_a_list_of_tools_that_is_broken_is_never_taken_for_text() -> None:
    for line in ("disallowedTools: [Bash", "tools: {Read: x"):
        with pytest.raises(BadCard) as told:
            card_of(line)
        assert "x:" in told.value.message and "not YAML" in told.value.message


def test_a_list_of_tools_without_a_value_names_none_and_numbers_may_be_texts() -> None:
    card = card_of("tools:\nmaxTurns: '30'")
    assert card.tools == () and card.fuel == 30 and not card.narrowed_to(None)("read")


def test_all_faults_are_told_at_once_each_with_its_line() -> None:
    text = "---\nname: 'a:b'\ndescription: 7\nmode: plann\nfuel: -1\ntools: [1]\nisolation: remote\n---\n"
    with pytest.raises(BadCard) as told:
        parse_card(text, Path("/x.md"), CardOrigin.USER, "x")
    assert [fault.split(" ")[0] for fault in told.value.faults] == [
        "/x.md:3:", "/x.md:5:", "/x.md:6:", "/x.md:7:", "/x.md:2:", "/x.md:4:",
    ]  # fmt: skip
    assert "unknown mode `plann` (did you mean `plan`?)" in told.value.message


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest", "BeforeTool"])
def test_a_card_whose_guard_would_not_run_is_not_used(event: str) -> None:
    guard = f"hooks:\n  {event}:\n    - matcher: Bash\n      hooks: [{{type: command, command: ./check}}]"
    with pytest.raises(BadCard, match=f"its {event} would guard nothing"):
        card_of(guard)
    assert "do not run here" in card_of(guard.replace(event, "Stop")).problems[0]


@pytest.mark.parametrize("name", ["Code Reviewer", "décor.v2", "a_b-c"])
def test_names_that_claude_code_takes_are_names(name: str) -> None:
    assert parse_card(f"---\nname: {name}\ndescription: d\n---\n", None, CardOrigin.USER, "x").name == name


@pytest.mark.parametrize("name", ["-rf", "a:b", "../x", "a\\nb", "a ", "x" * 65])
def test_names_that_are_none_are_told(name: str) -> None:
    text = f'---\nname: "{name}"\ndescription: d\n---\n'
    if name == "a ":
        assert parse_card(text, None, CardOrigin.USER, "x").name == "a"
        return
    with pytest.raises(BadCard, match="is no name for an agent"):
        parse_card(text, None, CardOrigin.USER, "x")


def test_no_card_of_a_weaker_place_stands_in(places: CardPlaces) -> None:
    file = agents_of(places) / "any.md"
    file.write_text("---\nname: general\ndescription: narrow\ntools: Read\n---\n")
    with pytest.raises(NoSuchAgent, match="comes from a project that is not trusted"):
        load_cards(places).find("general-purpose")
    TrustStore(places.home / "trust.json").trust(file)
    assert load_cards(places).find("general-purpose").tools == ("read", "ls")
    file.write_text("---\nname: general\ndescription: wide\n---\n")
    with pytest.raises(NoSuchAgent, match="has changed since it was trusted"):
        load_cards(places).find("general")
    assert list(list_notices(places)) == [
        "1 agent card of this project is not used: changed since trusted (`cru trust`): .cru/agents/any.md"
    ]
    own = places.home / "agents" / "general.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\nmode: plann\n---\n")
    with pytest.raises(NoSuchAgent, match="unknown mode `plann`"):
        load_cards(places).find("general")
    own.write_text("---\ndescription: mine\n---\n")
    assert load_cards(places).find("general").description == "mine"


def test_cards_that_have_not_changed_are_not_read_again(places: CardPlaces, monkeypatch: pytest.MonkeyPatch) -> None:
    file = places.home / "agents" / "a.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ndescription: d\n---\nGo.\n")
    os.utime(file)
    monkeypatch.setattr("cru.core.agents.discovery.JUST_NOW", 0)
    first = load_cards(places)
    assert load_cards(places) is first
    file.write_text("---\ndescription: other\n---\nGo.\n")
    assert load_cards(places).find("a").description == "other"
    file.unlink()
    assert "a" not in load_cards(places).by_name


def test_a_folder_with_any_number_of_files_is_read_up_to_a_limit(
    places: CardPlaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cru.core.agents.discovery.MOST_FILES", 5)
    for number in range(9):
        (agents_of(places) / f"{number}.md").write_text("---\ndescription: d\n---\n")
    cards = load_cards(places)
    assert len([file for file in cards.files if file.origin is CardOrigin.PROJECT]) == 5
    assert cards.problems == (f"{agents_of(places)} has more than 5 files: the others are not read",)


def test_a_text_beside_the_cards_is_not_told_in_a_run_and_is_no_card(places: CardPlaces) -> None:
    folder = places.home / "agents"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# About these agents\n")
    assert list(list_notices(places)) == []
    with pytest.raises(NoSuchAgent, match="no front matter"):
        load_cards(places).find("README")


def test_many_cards_of_a_stranger_cost_a_call_little(places: CardPlaces, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (agents_of(places) / f"{number:02}.md").write_text("---\ndescription: not general\n---\n")
    read: list[Path | None] = []

    def note(text: str, path: Path | None, origin: CardOrigin, name: str, judges: Callable[[str], bool]) -> AgentCard:
        read.append(path)
        return parse_card(text, path, origin, name, judges)

    monkeypatch.setattr("cru.core.agents.discovery.parse_card", note)
    cards = load_cards(places)
    read.clear()
    assert cards.find("explore").name == "explore" and read == []
    with pytest.raises(NoSuchAgent, match="the agent general comes from a project that is not trusted"):
        cards.find("general")
    assert len(read) == 20


def test_front_matter_without_end_is_not_read() -> None:
    with pytest.raises(BadCard, match="front matter is too long"):
        card_of("# " + "x" * 20_000)

"""`cru agents`: the agent cards, and what is wrong with them (docs/agents.md)."""

from __future__ import annotations

import msgspec

from cru.core.agents.cards import AgentCard
from cru.core.agents.discovery import UNTRUSTED, Cards, load_cards
from cru.core.base.values.visible import whole_lines
from cru.core.compose.start import card_places
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import start_of

HELP = """\
cru agents             every agent: what it is for, where its card is
cru agents show NAME   one card: its tools, mode, limits, and what it is told
cru agents --json
A card is a Markdown file in ~/.cru/agents, ~/.claude/agents or ~/.agents/agents, or in .cru/agents, .claude/agents or .agents/agents of a
project, once you have accepted it (`cru trust`).
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("agents", words, help=HELP, switches=("--json",), verbs=("list", "show"), most=2)
    if args.show_help():
        return 0
    start = start_of(parsed, "default")
    cards = load_cards(card_places(start))
    if args.words[:1] == ["show"] and len(args.words) == 2:
        _show(*_find(cards, args.words[1]))
        return 0
    if args.words[:1] == ["show"] or len(args.words) > 1:
        raise args.wrong(
            "`cru agents show` needs a name" if args.words[0] == "show" else "`cru agents list` takes no name"
        )
    if args.has("--json"):
        _print_json(cards)
    else:
        _list(cards)
    return 0


def _find(cards: Cards, name: str) -> tuple[AgentCard, str]:
    """A card, and why it cannot be used, "" if it can. Raises NoSuchAgent."""
    for file in cards.read_all():
        if file.name == name and file.state in UNTRUSTED and file.card is not None:
            return file.card, f"not trusted, so it cannot be used: `cru trust` ({file.state.value})"
    return cards.find(name), ""


def _untrusted(cards: Cards) -> list[AgentCard]:
    return [file.card for file in cards.read_all() if file.state in UNTRUSTED and file.card is not None]


def _problems(cards: Cards) -> list[str]:
    """All of them, those of the cards that await trust too."""
    return [*cards.problems, *(fault for file in cards.read_all() if file.state in UNTRUSTED for fault in file.faults)]


def _list(cards: Cards) -> None:
    """Problems go to standard error."""
    untrusted = _untrusted(cards)
    claimed = {card.name for card in untrusted}
    every = (
        *(card for name, card in cards.by_name.items() if name not in claimed or _is_first(cards, card)),
        *untrusted,
    )
    width = max((len(card.name) for card in every), default=0)
    for card in every:
        where = "" if card.file is None else f"  ({card.origin.value}: {card.file})"
        show(f"{card.name:<{width}}  {one_line(card.description)}{where}")
    for problem in _problems(cards):
        say(f"cru: {one_line(problem)}")
    if untrusted:
        say(
            "cru: those that are not trusted cannot be used, nor what else has their names; `cru trust` shows and accepts them"
        )


def _is_first(cards: Cards, card: AgentCard) -> bool:
    """Whether no stronger card has its name."""
    return next(file.card for file in cards.read_all() if file.name == card.name) is card


def _show(card: AgentCard, why_not: str) -> None:
    limits = [f"{card.fuel} batches of calls" if card.fuel else "", f"{card.timeout:g} s" if card.timeout else ""]
    rows = {
        "card": str(card.file or "comes with cru"),
        "for": card.description,
        "tools": "all of its parent's" if card.tools is None else ", ".join(card.tools) or "none",
        "not": ", ".join(card.denied),
        "model": card.model,
        "mode": f"{card.mode} or its parent's, whichever is stricter" if card.mode else "",
        "limits": ", ".join(filter(None, limits)),
        "isolation": card.isolation.value,
        "state": why_not,
    }
    show(card.name)
    for name, value in rows.items():
        if value:
            show(f"  {name:<9}  {one_line(value)}")
    show("")
    for line in whole_lines(card.prompt):
        show(line)


def _print_json(cards: Cards) -> None:
    rows = [
        {
            "name": card.name, "description": card.description, "origin": card.origin.value, "file": str(card.file or ""),
            "tools": card.tools, "denied": card.denied, "model": card.model, "mode": card.mode, "fuel": card.fuel,
            "timeout": card.timeout, "isolation": card.isolation.value,
        }
        for card in (*cards.by_name.values(), *_untrusted(cards))
    ]  # fmt: skip
    show(msgspec.json.encode({"agents": rows, "problems": _problems(cards)}).decode())

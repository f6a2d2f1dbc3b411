"""`cru agents`: the agent cards, and what is wrong with them (docs/agents.md)."""

from __future__ import annotations

from cru.app.start import user_home
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import start_of
from cru.tasks import CardPlaces
from cru.tasks.cards import AgentCard
from cru.tasks.discovery import Cards, load_cards

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
    cards = load_cards(CardPlaces(start.home, user_home(start), start.root))
    if args.words[:1] == ["show"] and len(args.words) == 2:
        _show(cards.find(args.words[1]))
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


def _list(cards: Cards) -> None:
    """Problems go to standard error."""
    untrusted, problems = cards.read_untrusted()
    every = (*cards.by_name.values(), *untrusted)
    width = max(len(card.name) for card in every)
    for card in every:
        where = "" if card.file is None else f"  ({card.origin.value}: {card.file})"
        show(f"{card.name:<{width}}  {one_line(card.description)}{where}")
    for problem in (*cards.problems, *problems):
        say(f"cru: {problem}")
    if untrusted:
        say("cru: those that are not trusted cannot be used; `cru trust` shows and accepts them")


def _show(card: AgentCard) -> None:
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
    }
    show(card.name)
    for name, value in rows.items():
        if value:
            show(f"  {name:<9}  {one_line(value)}")
    show(f"\n{card.prompt}")


def _print_json(cards: Cards) -> None:
    import msgspec

    untrusted, problems = cards.read_untrusted()
    rows = [
        {
            "name": card.name, "description": card.description, "origin": card.origin.value, "file": str(card.file or ""),
            "tools": card.tools, "denied": card.denied, "model": card.model, "mode": card.mode, "fuel": card.fuel,
            "timeout": card.timeout, "isolation": card.isolation.value,
        }
        for card in (*cards.by_name.values(), *untrusted)
    ]  # fmt: skip
    show(msgspec.json.encode({"agents": rows, "problems": [*cards.problems, *problems]}).decode())

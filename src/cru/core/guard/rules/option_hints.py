"""What a person is told about a command that an allow rule covers but for an option, and which rule would cover it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cru.core.base.files.glob import escape
from cru.core.guard.rules.allowed_commands import allowed_text, matches_command, names_uses
from cru.core.guard.rules.rules import Rule, find_allowing_rules, names_call, parse_rule
from cru.core.guard.shell.analysis import analyze
from cru.core.guard.shell.simplify import simplify

if TYPE_CHECKING:
    from cru.core.guard.rules.paths import JudgedCall, PathRoots
    from cru.core.guard.shell.options import OptionUse


def explain_unnamed_use(rules: Sequence[Rule], call: JudgedCall, places: PathRoots) -> str:
    """The first option that no rule writes out, of a command that the rules would cover without it; "" if that is not why."""
    own = [rule for rule in rules if names_call(rule, call)]
    if own and (why := _why_unclear(own, call, places)):
        return f"no allow rule with a `*` covers it: it has {why}"
    for words, uses in zip(call.command.parts, call.command.uses, strict=True) if own else ():
        text = allowed_text(words)
        matching = [rule for rule in own if matches_command(rule.pieces, text)]
        if matching and not any(names_uses(rule.pattern or "", words, uses) for rule in matching):
            use = next((use for use in uses if not _is_named(matching, words, use)), uses[0])
            wider = next(_rules_with(matching, words, use, rules, call, places), "")
            hint = f" (a rule such as `{wider}` does)" if wider else ""
            return f"no allow rule writes out `{use.option}`, which {use.effect.value}{hint}"
    return ""


def _why_unclear(rules: Sequence[Rule], call: JudgedCall, places: PathRoots) -> str:
    """What makes a command uncertain of which rules cover a part."""
    text = simplify(call.detail, places.root)
    command = analyze(text) if text else call.command
    is_meant = any(matches_command(rule.pieces, allowed_text(words)) for words in command.parts for rule in rules)
    return command.opaque if is_meant else ""


def _is_named(rules: Sequence[Rule], words: tuple[str, ...], use: OptionUse) -> bool:
    return any(names_uses(rule.pattern or "", words, [use]) for rule in rules)


def _rules_with(
    matching: Sequence[Rule],
    words: Sequence[str],
    use: OptionUse,
    rules: Sequence[Rule],
    call: JudgedCall,
    places: PathRoots,
) -> Iterator[str]:
    """Each matching rule with the option before its last star, if the call is covered then."""
    rest = use.word[use.length :]
    option = escape(use.option) + ("=*" if rest.startswith("=") else "*" if rest else "")
    for rule in matching:
        pattern = rule.pattern or ""
        if not pattern.endswith(" *") or " " in use.option:
            continue
        fixed = pattern.removesuffix(" *")
        for text in (f"{fixed} {option} *", f"{fixed} * {option} *"):
            wider = parse_rule(f"{call.tool}:{text}")
            if find_allowing_rules((*rules, wider), call, places):
                yield wider.text

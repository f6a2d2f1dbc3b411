"""Texts from strangers that once cost a reader more than their length: reading them grows with the length, not with its square."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.guard.rules.test_commands import bash, gate
from tests.core.hooks.dialect_world import about, source
from tests.kit.growth import Work, assert_linear
from tests.kit.waiting import ends_soon

from cru.core.base.files.glob import (
    BadGlob,
    compile_name,
    expand_braces,
    matches_identifier,
    matches_path,
    matches_search,
    matches_text,
    parse_glob,
    parse_path_glob,
    parse_search_glob,
)
from cru.core.base.net.web_url import LONGEST as LONGEST_URL
from cru.core.base.net.web_url import why_not_public
from cru.core.base.process import forked
from cru.core.guard.rules.command_parts import judge_parts
from cru.core.guard.rules.gate import Gate
from cru.core.guard.rules.protected_writes import may_write_protected
from cru.core.hooks import MAX_CONFIG_TABLES, MAX_CONFIG_VALUES, loader, synthetic_events
from cru.core.hooks.dialects import load_dialects
from cru.core.hooks.errors import SlowRegex
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.status import LoadPolicy
from cru.core.hooks.parsing import bounded_regex
from cru.core.tools.html import plain_text
from cru.core.tools.walk import RULES_LIMIT, IgnoreFile, read_rules

SIZE = 60_000

COMMANDS: dict[str, Callable[[int], str]] = {
    "words": lambda size: "git " + "a " * (size // 2),
    "commands": lambda size: "ls;" * (size // 3),
    "lists": lambda size: "a&&" * (size // 3) + "a",
    "substitutions": lambda size: "$(" * (size // 3) + ")" * (size // 3),
    "open parentheses": lambda size: "(" * size,
    "backquotes": lambda size: "`" * size,
    "braces": lambda size: "{a," * (size // 3),
    "documents": lambda size: "".join(f"cat <<A{i}\n" for i in range(size // 12)),
    "redirections": lambda size: "> a " * (size // 4),
    "wrappers": lambda size: "env " * (size // 4) + "rm x",
    "programs among options": lambda size: "git " + "git -P " * (size // 7),
    "options before a subcommand": lambda size: "git " + "-C a " * (size // 5) + "push",
    "programs with options": lambda size: "git -c a " * (size // 9),
    "long options": lambda size: "git log " + "--outp " * (size // 7),
    "find": lambda size: "find . " + "-exec a ; " * (size // 10),
    "sed": lambda size: "sed " + "'s/a/b/;" * (size // 8) + "'",
    "awk": lambda size: "awk '" + "{print}" * (size // 7) + "'",
    "suspect words": lambda size: "$x " + "a=b " * (size // 4),
    "suspect options": lambda size: "$x " + "-Srm " * (size // 5),
    "pipes into a shell": lambda size: "curl a | sh " * (size // 12),
    "beginnings of a rule": lambda size: "curl|" * (size // 5),
    "lines of code": lambda size: "python -c '" + "a;" * (size // 2) + "'",
    "processes": lambda size: "ps " + "e " * (size // 2),
    "words of an unknown program": lambda size: "wrap " + "a " * (size // 2),
    "command lines of an unknown program": lambda size: "wrap " + " ".join(f"'rm {i};ls'" for i in range(size // 12)),
    "programs that run one another": lambda size: "uv run " * (size // 7) + "rm x",
    "letters of options": lambda size: "rm " + "-rv " * (size // 4),
    "letters of one option": lambda size: "rm -" + "r" * size,
    "commands with options": lambda size: "wrap " + "rm -f a " * (size // 8),
}
RULES = (
    "bash:rm *",
    "bash:*curl*|*sh*",
    "bash:curl*|*bash*",
    "bash:git push --force *",
    "bash:*x*y*z*w*q*",
    "bash:g*t push*",
    "bash:rm -rf *",
    "bash:* --force *",
    "bash:curl -X POST *",
)


@pytest.mark.slow
def on_text(make_text: Callable[[int], str], read: Callable[[str], object]) -> Work:
    def work(size: int) -> Callable[[], object]:
        text = make_text(size)
        return lambda: read(text)

    return work


def judge_commands(judge: Gate, name: str) -> Work:
    return on_text(COMMANDS[name], lambda text: bash(judge, text))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_long_command_is_judged_in_time(name: str) -> None:
    judge = gate(allow=("bash:git *", "bash:*a*b*c*"), deny=RULES, ask=("bash:sudo *",))
    assert_linear(on_text(COMMANDS[name], lambda text: bash(judge, text)), SIZE)
    assert_linear(on_text(COMMANDS[name], lambda text: judge_parts(judge, "bash", text)), SIZE)
    assert_linear(on_text(COMMANDS[name], lambda text: may_write_protected(text, judge.places)), SIZE)


@pytest.mark.slow
def test_a_star_before_an_option_costs_no_square_of_the_programs() -> None:
    judge = gate(mode="trust", deny=("bash:* --force *",))
    assert_linear(judge_commands(judge, "programs among options"), SIZE)
    assert bash(judge, "git git -P --force x").decision == bash(judge, "git -P --forc x").decision == "deny"


@pytest.mark.slow
def test_a_long_command_is_judged_as_a_short_one() -> None:
    judge = gate(mode="trust", deny=RULES)
    for text in (COMMANDS["wrappers"](SIZE), COMMANDS["suspect options"](SIZE), "ls;" * 20_000 + "rm x"):
        assert bash(judge, text).decision == "deny", text[-20:]
    assert bash(judge, "git " + "-C a " * 12_000 + "push --force x").decision == "deny"
    assert bash(judge, "git -C a push --force x").decision == bash(judge, "git -C a push x").decision == "deny"
    assert bash(judge, "git " + "-C a " * 12_000 + "pull x").decision == "allow"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["words", "commands", "suspect words", "options before a subcommand", "long options"])
def test_a_long_command_is_judged_in_time_by_many_rules(name: str) -> None:
    others = [f"bash:program{number} *" for number in range(500)]
    near = [f"bash:git a{number} *" for number in range(250)] + [f"bash:ls --option{number}" for number in range(250)]
    judge = gate(mode="trust", deny=tuple(others), ask=tuple(near))
    assert_linear(judge_commands(judge, name), SIZE)


@pytest.mark.slow
def test_a_command_that_is_too_long_for_all_rules_is_denied_and_says_why() -> None:
    judge = gate(mode="trust", deny=tuple(f"bash:a *a b{number}*" for number in range(500)))
    text = "ls " + "a " * 20_000 + " ".join(f"b{number}" for number in range(500))
    verdict = bash(judge, text)
    assert verdict.decision == "deny" and "the command is too long to be tried against every rule" in verdict.reason
    assert bash(judge, "ls a b7").decision == "allow"


@pytest.mark.slow
def test_fifteen_thousand_rules_are_not_tried_on_a_long_command() -> None:
    """As many as fit into a project's config.toml."""
    judge = gate(mode="trust", deny=tuple(f"bash:program{number} *" for number in range(15_000)))
    assert bash(judge, "ls x").decision == "allow" and bash(judge, "program14999 x").decision == "deny"
    assert_linear(on_text(lambda size: "true " + "; `a`" * (size // 5), lambda text: bash(judge, text)), SIZE)
    verdict = bash(judge, "true " + "; `a`" * 12_000)
    assert "the command is too long to be tried against every rule" in verdict.reason


@pytest.mark.slow
def test_text_that_looks_like_the_beginning_of_a_tag_is_read_in_time() -> None:
    assert_linear(on_text(lambda size: "<" * size, plain_text), 1_000_000)
    assert plain_text("a < b, 3<4 <b>c</b>") == "a < b, 3<4 c"


def test_of_a_long_command_few_parts_are_judged_one_by_one() -> None:
    parts = judge_parts(gate(), "bash", COMMANDS["substitutions"](SIZE))
    assert len(parts.parts) <= 2 and parts.unclear
    many = judge_parts(gate(), "bash", "; ".join(f"ls {i}" for i in range(60)))
    assert (len(many.parts), many.more) == (50, 10)


GLOBS: dict[str, Callable[[int], object]] = {
    "stars": lambda size: matches_text(parse_glob("*a" * (size // 12) + "b"), "a" * SIZE),
    "a text for stars": lambda size: matches_text(parse_glob("*a" * 5000 + "b"), "a" * size),
    "folders": lambda size: matches_path(parse_path_glob("**/a/" * 200 + "b"), ("a",) * (size // 30)),
    "stars in a name": lambda size: compile_name("*a" * (size // 30) + "b")("a" * 250),
    "classes in a name": lambda size: compile_name("*[ab]" * (size // 60) + "c")("a" * 250),
    "folders of a search": lambda size: matches_search(
        parse_search_glob(["**", "*a" * 100 + "b"] * 50), ("a" * 200,) * (size // 300)
    ),
    "stars in an identifier": lambda size: matches_identifier("*a" * 20 + "b", "a" * (size // 15)),
    "folders of an identifier": lambda size: matches_identifier("**/a" * 20 + "b", "a/" * (size // 30)),
    "choices in an identifier": lambda size: matches_identifier("{a,a}" * (size // 1500) + "b", "a" * 40),
    "open braces": lambda size: expand_braces("{" * size),
    "open braces with commas": lambda size: expand_braces("{a," * (size // 3)),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", GLOBS)
def test_a_glob_of_many_stars_or_braces_is_read_in_time(name: str) -> None:
    assert_linear(lambda size: lambda: GLOBS[name](size), SIZE)


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [("{a,{b}", ["{a,{b}"]), ("a}{b,c}", ["a}b", "a}c"]), ("{{a,b}", ["{a", "{b"]), ("{{a,b},c}", ["a", "b", "c"]), ("{a}", ["{a}"])],
)  # fmt: skip
def test_braces_that_do_not_fit_together_stand_for_themselves(text: str, alternatives: list[str]) -> None:
    assert expand_braces(text) == alternatives
    with pytest.raises(BadGlob):
        expand_braces("{a,b}" * 30)


LINES = {
    "names": "name{}",
    "endings": "*.e{}",
    "stars": "a{}*b",
    "classes": "[ab]{}?",
    "folders": "d{}/x",
    "stars in folders": "a{}*/b*{}",
    "folders anywhere": "**/a{}/**/b*c",
    "excepted": "!a{}",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_a_gitignore_of_as_many_patterns_as_fit_into_it_is_read_in_time(tmp_path: Path, name: str) -> None:
    def work(size: int) -> Callable[[], object]:
        lines = (LINES[name].replace("{}", str(number)) for number in range(size // (len(LINES[name]) + 12)))
        (tmp_path / f"{size}.gitignore").write_text("\n".join(("*.log", *lines)))
        return lambda: look(tmp_path / f"{size}.gitignore")

    def look(path: Path) -> None:
        file = IgnoreFile(read_rules(str(path)))
        assert file.find_match(("a.log",), False)
        for number in range(100):
            file.find_match((f"d{number}", "x"), False)

    assert_linear(work, RULES_LIMIT)


def test_of_a_usual_gitignore_no_line_is_passed_over(tmp_path: Path) -> None:
    lines = [*(f"name{number}" for number in range(5000)), *(f"*.e{number}" for number in range(5000)), "a*b", "last"]
    (tmp_path / ".gitignore").write_text("\n\n".join(lines))
    assert len(read_rules(str(tmp_path / ".gitignore"))) == len(lines)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[", "*x", "**/a/"])
def test_a_line_of_gitignore_that_no_path_can_match_is_passed_over(tmp_path: Path, piece: str) -> None:
    def work(size: int) -> Callable[[], object]:
        (tmp_path / f"{size}").write_text(f"{piece * (size // len(piece))}b\n*.log\n")
        return lambda: rule_counts.add(len(read_rules(str(tmp_path / f"{size}"))))

    rule_counts: set[int] = set()
    assert_linear(work, 200_000)
    assert rule_counts == {1}


def test_a_gitignore_of_four_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / ".gitignore").open("wb") as file:
        os.truncate(file.fileno(), 4 << 30)
    tracemalloc.start()
    try:
        assert read_rules(str(tmp_path / ".gitignore")) == ()
        assert tracemalloc.get_traced_memory()[1] < 2 * RULES_LIMIT
    finally:
        tracemalloc.stop()


# hooks of strangers ------------------------------------------------------------------------------------------------------------------

CLAUDE, CRUSH, CODEX = ".claude/settings.json", "crush.json", ".codex/config.toml"
HANDLER = '{"hooks":[{"type":"command","command":"a"}]}'
FILES: dict[str, tuple[str, Callable[[int], str]]] = {
    "hooks": (CRUSH, lambda count: '{"hooks":{"PreToolUse":[' + ",".join(['{"command":"a"}'] * count) + "]}}"),
    "hooks of groups": (CLAUDE, lambda count: '{"hooks":{"PreToolUse":[' + ",".join([HANDLER] * count) + "]}}"),
    "hooks of one group": (CLAUDE, lambda count: '{"hooks":{"PreToolUse":[{"hooks":[' + ",".join(["{}"] * count) + "]}]}}"),
    "values": (CLAUDE, lambda count: '{"hooks":{},"x":[' + ",".join("1" * count) + "]}"),
    "keys": (CLAUDE, lambda count: '{"hooks":{},"x":{' + ",".join(f'"{n:05}":1' for n in range(count)) + "}}"),
    "misspelt events": (CLAUDE, lambda count: '{"hooks":{' + ",".join(f'"PreToolUs{n:05}":[{{}}]' for n in range(count)) + "}}"),
    "misspelt keys": (CLAUDE, lambda count: "{" + ",".join(f'"hook{n:05}":1' for n in range(count)) + "}"),
    "tables": (CODEX, lambda count: '[[hooks.PreToolUse]]\ncommand="a"\n' * count),
    "lines": (CODEX, lambda count: "\n".join(f"a{n:05}.b.c.d=1" for n in range(count))),
}  # fmt: skip
"""name → (file, its text with so many of them)"""
MANY = {
    "hooks": 60_000, "hooks of groups": 20_000, "hooks of one group": 89_000, "values": 500_000, "keys": 90_000,
    "misspelt events": 30_000, "misspelt keys": 60_000, "tables": 30_000, "lines": 60_000,
}  # fmt: skip
ALLOWED = {
    "hooks": MAX_CONFIG_TABLES - 10, "hooks of groups": MAX_CONFIG_TABLES // 3 - 10, "values": MAX_CONFIG_VALUES - 10,
    "misspelt events": MAX_CONFIG_TABLES // 2 - 10, "misspelt keys": MAX_CONFIG_VALUES - 10,
}  # fmt: skip


def read_hooks(root: Path, name: str, problems: dict[int, list[str]]) -> Work:
    """Read a project's file of hooks as a start does. What is wrong with it as a whole goes to `problems`, by the number of hooks."""
    file, make_text = FILES[name]
    (root / file).parent.mkdir(exist_ok=True)
    facts, dialects = about(root), load_dialects(["claude", "crush", "codex"])

    def work(count: int) -> Callable[[], object]:
        (root / file).write_text(make_text(count))
        return lambda: read(count)

    def read(count: int) -> None:
        sources, refused = loader.read_sources(dialects.values(), facts)
        loader.load_hooks(sources, dialects, LoadPolicy(), facts)
        problems[count] = [str(problem) for problem in refused]

    return work


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_a_file_of_more_hooks_than_anybody_writes_is_not_read(tmp_path: Path, name: str) -> None:
    problems: dict[int, list[str]] = {}
    assert_linear(read_hooks(tmp_path, name, problems), MANY[name])
    (problem,) = problems[max(problems)]
    assert "it holds more than" in problem


@pytest.mark.slow
@pytest.mark.parametrize("name", ALLOWED)
def test_a_file_of_as_many_hooks_as_are_read_is_read_in_time(tmp_path: Path, name: str) -> None:
    problems: dict[int, list[str]] = {}
    assert_linear(read_hooks(tmp_path, name, problems), ALLOWED[name])
    assert problems[max(problems)] == []


@pytest.mark.parametrize("dialect", ["cru", "crush", "claude", "codex", "gemini"])
@pytest.mark.parametrize(
    "matcher", [".*_.*_.*_.*_!", "(.*)(.*)(.*)(.*)!", "(_.*)(_+)(.*)(_+)!", "(_+)+!", r"(\w+_?)*!"]
)
def test_a_matcher_that_has_many_ways_is_ended_and_the_hook_runs(
    dialect: str, matcher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked, "SECONDS", 0.01)
    monkeypatch.setattr(bounded_regex, "_too_slow", set())
    entry = HookEntry(
        id="x", dialect=dialect, event="PreToolUse", source=source(dialect, "", "x"), line=1, matcher=matcher, name="x"
    )
    tool = "_" * 4_000
    call = synthetic_events.make_call(tool)
    record = load_dialects([dialect])[dialect]
    with ends_soon():
        with pytest.raises(SlowRegex):
            record.matching.matcher_fits(entry, call, tool)
        assert record.may_fit(entry, call, tool)


@pytest.mark.parametrize(("matcher", "fits"), [("^bash$", False), ("a$", True)])
def test_a_name_that_is_longer_than_any_is_searched_to_its_end(matcher: str, fits: bool) -> None:
    entry = HookEntry(
        id="x", dialect="cru", event="x", source=source("cru", "", "x"), line=1, matcher=matcher, name="x"
    )
    tool = "a" * 5000
    matcher_fits = load_dialects(["cru"])["cru"].matching.matcher_fits
    assert matcher_fits(entry, synthetic_events.make_call(tool), tool) is fits


# addresses ---------------------------------------------------------------------------------------------------------------------------

HOSTS: dict[str, Callable[[int], str]] = {
    "one label": lambda size: "à" * size,
    "labels": lambda size: "à." * (size // 2),
    "punycode": lambda size: "xn--" + "a" * size,
    "digits of punycode": lambda size: "xn--" + "9" * size,
    "labels of punycode": lambda size: "xn--a." * (size // 6),
    "combining characters": lambda size: "a" + "\u0301" * size,
    "dots of another script": lambda size: "．" * size,
    "percent signs": lambda size: "%C3%A0" * (size // 6),
    "different characters": lambda size: "".join(chr(0x4E00 + number % 20_000) for number in range(size)),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [16_000, 1_000_000])
@pytest.mark.parametrize("name", HOSTS)
def test_a_long_host_is_judged_in_time(name: str, size: int) -> None:
    judge = gate(mode="trust", deny=("fetch:https://*.evil.example/*",))

    def make_url(size: int) -> str:
        return f"https://{HOSTS[name](size)}/x"

    assert_linear(on_text(make_url, why_not_public), size)
    assert_linear(on_text(make_url, lambda url: judge.judge("fetch", "fetch", url)), size)
    url = make_url(size)
    assert len(url) < LONGEST_URL or why_not_public(url) == "the address cannot be understood"

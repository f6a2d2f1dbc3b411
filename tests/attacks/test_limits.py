"""Texts of strangers that cost a reader more than their length: each is read in a time that the loop can spare. What is measured is the
processor's time, on a machine as usual; the bar is three times the half second that is promised, and what was mended took ten and more."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.extensions.hooks.dialect_world import about, source
from tests.kit.processor_time import processor_seconds
from tests.permissions.test_commands import bash, gate

from cru.extensions.hooks import MAX_CONFIG_TABLES, MAX_CONFIG_VALUES, loader, synthetic_events
from cru.extensions.hooks.dialects import load_dialects
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.status import LoadPolicy
from cru.files.glob import (
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
from cru.net.web_url import LONGEST as LONGEST_URL
from cru.net.web_url import why_not_public
from cru.permissions.command_parts import judge_parts
from cru.permissions.protected_writes import may_write_protected
from cru.tools.html import plain_text
from cru.tools.walk import RULES_LIMIT, IgnoreFile, read_rules

SECONDS = 1.5
SIZE = 60_000

COMMANDS = {
    "words": "git " + "a " * (SIZE // 2),
    "commands": "ls;" * (SIZE // 3),
    "lists": "a&&" * (SIZE // 3) + "a",
    "substitutions": "$(" * (SIZE // 3) + ")" * (SIZE // 3),
    "open parentheses": "(" * SIZE,
    "backquotes": "`" * SIZE,
    "braces": "{a," * (SIZE // 3),
    "documents": "".join(f"cat <<A{i}\n" for i in range(5000)),
    "redirections": "> a " * (SIZE // 4),
    "wrappers": "env " * (SIZE // 4) + "rm x",
    "programs among options": "git " + "git -P " * (SIZE // 7),
    "options before a subcommand": "git " + "-C a " * (SIZE // 5) + "push",
    "programs with options": "git -c a " * (SIZE // 9),
    "long options": "git log " + "--outp " * (SIZE // 7),
    "find": "find . " + "-exec a ; " * (SIZE // 10),
    "sed": "sed " + "'s/a/b/;" * (SIZE // 8) + "'",
    "awk": "awk '" + "{print}" * (SIZE // 7) + "'",
    "suspect words": "$x " + "a=b " * (SIZE // 4),
    "suspect options": "$x " + "-Srm " * (SIZE // 5),
    "pipes into a shell": "curl a | sh " * (SIZE // 12),
    "beginnings of a rule": "curl|" * (SIZE // 5),
    "lines of code": "python -c '" + "a;" * (SIZE // 2) + "'",
    "processes": "ps " + "e " * (SIZE // 2),
}
RULES = (
    "bash:rm *",
    "bash:*curl*|*sh*",
    "bash:curl*|*bash*",
    "bash:git push --force *",
    "bash:*x*y*z*w*q*",
    "bash:g*t push*",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_long_command_is_judged_in_time(name: str) -> None:
    judge, text = gate(allow=("bash:git *", "bash:*a*b*c*"), deny=RULES, ask=("bash:sudo *",)), COMMANDS[name]
    assert processor_seconds(lambda: bash(judge, text)) < SECONDS
    assert processor_seconds(lambda: judge_parts(judge, "bash", text)) < SECONDS
    assert processor_seconds(lambda: may_write_protected(text, judge.places)) < SECONDS


@pytest.mark.slow
def test_a_star_before_an_option_costs_no_square_of_the_programs() -> None:
    judge = gate(mode="trust", deny=("bash:* --force *",))
    assert processor_seconds(lambda: bash(judge, COMMANDS["programs among options"])) < SECONDS
    assert bash(judge, "git git -P --force x").decision == bash(judge, "git -P --forc x").decision == "deny"


@pytest.mark.slow
def test_a_long_command_is_judged_as_a_short_one() -> None:
    judge = gate(mode="trust", deny=RULES)
    for text in (COMMANDS["wrappers"], COMMANDS["suspect options"], "ls;" * 20_000 + "rm x"):
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
    assert processor_seconds(lambda: bash(judge, COMMANDS[name])) < SECONDS


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
    verdicts = []
    assert processor_seconds(lambda: verdicts.append(bash(judge, "true " + "; `a`" * 12_000))) < SECONDS
    assert "the command is too long to be tried against every rule" in verdicts[0].reason


def test_text_that_looks_like_the_beginning_of_a_tag_is_read_in_time() -> None:
    assert processor_seconds(lambda: plain_text("<" * 1_000_000)) < 0.5
    assert plain_text("a < b, 3<4 <b>c</b>") == "a < b, 3<4 c"


def test_of_a_long_command_few_parts_are_judged_one_by_one() -> None:
    parts = judge_parts(gate(), "bash", COMMANDS["substitutions"])
    assert len(parts.parts) <= 2 and parts.unclear
    many = judge_parts(gate(), "bash", "; ".join(f"ls {i}" for i in range(60)))
    assert (len(many.parts), many.more) == (50, 10)


GLOBS: dict[str, Callable[[], object]] = {
    "stars": lambda: matches_text(parse_glob("*a" * 5000 + "b"), "a" * SIZE),
    "folders": lambda: matches_path(parse_path_glob("**/a/" * 200 + "b"), ("a",) * 2000),
    "stars in a name": lambda: compile_name("*a" * 2000 + "b")("a" * 250),
    "classes in a name": lambda: compile_name("*[ab]" * 1000 + "c")("a" * 250),
    "folders of a search": lambda: matches_search(parse_search_glob(["**", "*a" * 100 + "b"] * 50), ("a" * 200,) * 200),
    "stars in an identifier": lambda: matches_identifier("*a" * 20 + "b", "a" * 4000),
    "folders of an identifier": lambda: matches_identifier("**/a" * 20 + "b", "a/" * 2000),
    "choices in an identifier": lambda: matches_identifier("{a,a}" * 40 + "b", "a" * 40),
    "open braces": lambda: expand_braces("{" * SIZE),
    "open braces with commas": lambda: expand_braces("{a," * (SIZE // 3)),
}


@pytest.mark.parametrize("name", GLOBS)
def test_a_glob_of_many_stars_or_braces_is_read_in_time(name: str) -> None:
    assert processor_seconds(GLOBS[name]) < SECONDS


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
    lines = (LINES[name].replace("{}", str(number)) for number in range(RULES_LIMIT // (len(LINES[name]) + 12)))
    (tmp_path / ".gitignore").write_text("\n".join(("*.log", *lines)))

    def look() -> None:
        file = IgnoreFile(read_rules(str(tmp_path / ".gitignore")))
        assert file.find_match(("a.log",), False)
        for number in range(100):
            file.find_match((f"d{number}", "x"), False)

    assert processor_seconds(look) < SECONDS


def test_of_a_usual_gitignore_no_line_is_passed_over(tmp_path: Path) -> None:
    lines = [*(f"name{number}" for number in range(5000)), *(f"*.e{number}" for number in range(5000)), "a*b", "last"]
    (tmp_path / ".gitignore").write_text("\n\n".join(lines))
    assert len(read_rules(str(tmp_path / ".gitignore"))) == len(lines)


@pytest.mark.parametrize("line", ["[" * 200_000, "*x" * 100_000, "**/a/" * 40_000 + "b"], ids=["[", "*", "**"])
def test_a_line_of_gitignore_that_no_path_can_match_is_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / ".gitignore").write_text(f"{line}\n*.log\n")
    rules: list[object] = []
    assert processor_seconds(lambda: rules.extend(read_rules(str(tmp_path / ".gitignore")))) < SECONDS
    assert len(rules) == 1


def test_a_gitignore_of_four_gigabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / ".gitignore").open("wb") as file:
        os.truncate(file.fileno(), 4 << 30)
    assert processor_seconds(lambda: IgnoreFile(read_rules(str(tmp_path / ".gitignore")))) < SECONDS
    assert read_rules(str(tmp_path / ".gitignore")) == ()


# hooks of strangers ------------------------------------------------------------------------------------------------------------------

CLAUDE, CRUSH, CODEX = ".claude/settings.json", "crush.json", ".codex/config.toml"
HANDLER = '{"hooks":[{"type":"command","command":"a"}]}'
MANY = {
    "hooks": (CRUSH, '{"hooks":{"PreToolUse":[' + ",".join(['{"command":"a"}'] * 60_000) + "]}}"),
    "hooks of groups": (CLAUDE, '{"hooks":{"PreToolUse":[' + ",".join([HANDLER] * 20_000) + "]}}"),
    "hooks of one group": (CLAUDE, '{"hooks":{"PreToolUse":[{"hooks":[' + ",".join(["{}"] * 89_000) + "]}]}}"),
    "values": (CLAUDE, '{"hooks":{},"x":[' + ",".join("1" * 500_000) + "]}"),
    "keys": (CLAUDE, '{"hooks":{},"x":{' + ",".join(f'"{number}":1' for number in range(90_000)) + "}}"),
    "misspelt events": (
        CLAUDE,
        '{"hooks":{' + ",".join(f'"PreToolUs{number}":[{{}}]' for number in range(30_000)) + "}}",
    ),
    "misspelt keys": (CLAUDE, "{" + ",".join(f'"hook{number}":1' for number in range(60_000)) + "}"),
    "tables": (CODEX, '[[hooks.PreToolUse]]\ncommand="a"\n' * 30_000),
    "lines": (CODEX, "\n".join(f"a{number}.b.c.d=1" for number in range(60_000))),
}
ALLOWED = {
    "hooks": (CRUSH, '{"hooks":{"PreToolUse":[' + ",".join(['{"command":"a"}'] * (MAX_CONFIG_TABLES - 10)) + "]}}"),
    "groups": (CLAUDE, '{"hooks":{"PreToolUse":[' + ",".join([HANDLER] * (MAX_CONFIG_TABLES // 3 - 10)) + "]}}"),
    "values": (CLAUDE, '{"hooks":{},"x":[' + ",".join("1" * (MAX_CONFIG_VALUES - 10)) + "]}"),
    "misspelt events": (
        CLAUDE, '{"hooks":{' + ",".join(f'"PreToolUs{number}":[{{}}]' for number in range(MAX_CONFIG_TABLES // 2 - 10)) + "}}",
    ),
    "misspelt keys": (CLAUDE, "{" + ",".join(f'"hook{number}":1' for number in range(MAX_CONFIG_VALUES - 10)) + "}"),
}  # fmt: skip


def read_hooks(root: Path, name: str, text: str) -> tuple[float, list[str]]:
    """How long a start reads a project's file of hooks, and what is wrong with it as a whole."""
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text(text)
    facts, dialects = about(root), load_dialects(["claude", "crush", "codex"])
    problems: list[str] = []

    def read() -> None:
        sources, refused = loader.read_sources(dialects.values(), facts)
        loader.load_hooks(sources, dialects, LoadPolicy(), facts)
        problems.extend(str(problem) for problem in refused)

    return processor_seconds(read), problems


@pytest.mark.parametrize("name", MANY)
def test_a_file_of_more_hooks_than_anybody_writes_is_not_read(tmp_path: Path, name: str) -> None:
    seconds, problems = read_hooks(tmp_path, *MANY[name])
    assert seconds < SECONDS and len(problems) == 1 and "it holds more than" in problems[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALLOWED)
def test_a_file_of_as_many_hooks_as_are_read_is_read_in_time(tmp_path: Path, name: str) -> None:
    seconds, problems = read_hooks(tmp_path, *ALLOWED[name])
    assert seconds < SECONDS and problems == []


@pytest.mark.sample(9)
@pytest.mark.parametrize("dialect", ["cru", "crush", "claude", "codex", "gemini"])
@pytest.mark.parametrize("matcher", [".*_.*_.*_.*_!", "(.*)(.*)(.*)(.*)!", "mcp_.*a.*b.*c!", "(a+)+!", r"(\w+_?)*!"])
def test_a_matcher_that_has_many_ways_is_tried_in_time(dialect: str, matcher: str) -> None:
    entry = HookEntry(
        id="x", dialect=dialect, event="PreToolUse", source=source(dialect, "", "x"), line=1, matcher=matcher, name="x"
    )
    fits = load_dialects([dialect])[dialect].matching.matcher_fits
    calls = [
        (synthetic_events.make_call(tool), tool) for tool in ("mcp_" + "_" * 3000, "a" * 4000, "mcp_" + "abc" * 1000)
    ]
    results: list[bool] = []
    assert processor_seconds(lambda: results.extend(fits(entry, call, tool) for call, tool in calls)) < SECONDS
    assert results == [False] * 3


def test_a_name_that_is_longer_than_any_is_seen_by_every_guard() -> None:
    entry = HookEntry(
        id="x", dialect="cru", event="x", source=source("cru", "", "x"), line=1, matcher="^bash$", name="x"
    )
    fits = load_dialects(["cru"])["cru"].matching.matcher_fits
    assert fits(entry, synthetic_events.make_call("a" * 5000), "a" * 5000)


# addresses ---------------------------------------------------------------------------------------------------------------------------

HOSTS = {
    "one label": "à" * 16_000,
    "labels": "à." * 8_000,
    "punycode": "xn--" + "a" * 16_000,
    "digits of punycode": "xn--" + "9" * 16_000,
    "labels of punycode": "xn--a." * 2_600,
    "combining characters": "a" + "\u0301" * 16_000,
    "dots of another script": "．" * 16_000,
    "percent signs": "%C3%A0" * 2_600,
    "different characters": "".join(chr(0x4E00 + number) for number in range(16_000)),
    "a longer one": "à" * 1_000_000,
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", HOSTS)
def test_a_long_host_is_judged_in_time(name: str) -> None:
    judge, url = gate(mode="trust", deny=("fetch:https://*.evil.example/*",)), f"https://{HOSTS[name]}/x"
    assert processor_seconds(lambda: why_not_public(url)) < SECONDS
    assert processor_seconds(lambda: judge.judge("fetch", "fetch", url)) < SECONDS
    assert len(url) < LONGEST_URL or why_not_public(url) == "the address cannot be understood"

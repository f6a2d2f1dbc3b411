"""Files that somebody wrote to do harm, or by mistake: nothing hangs, nothing is passed by in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.hooks.crush_world import about
from tests.core.hooks.dialect_world import parsed
from tests.core.hooks.test_load import where

from cru.core.base.values.visible import LINE, in_a_line, visible
from cru.core.hooks import MAX_CONFIG_BYTES, loader
from cru.core.hooks.dialects import load_dialects
from cru.core.hooks.dialects.gemini.config import quote_folders
from cru.core.hooks.discovery import find_dialects, stamp_files
from cru.core.hooks.model.entry import ProblemKind
from cru.core.hooks.parsing.bounded_regex import MOST_WAYS, check_regex, count_ways
from cru.core.hooks.parsing.positions import DEPTH, locate_values, without_comments

LONG = 200_000
NAMES: dict[str, str] = {
    "cru": "hooks.json", "crush": "crush.json", "claude": "settings.json", "codex": "hooks.json", "gemini": "settings.json",
}  # fmt: skip
EVENTS: dict[str, str] = {"gemini": "BeforeTool"}


@pytest.mark.sample(2)
@pytest.mark.parametrize("piece", ['"\\', "/*", '"\\"', '\\"', "//", "/*/", '"/*', "[", "{", '{"a":', "*/", '"a"'])
@pytest.mark.parametrize("name", ["cru", "gemini"])
def test_a_file_of_anything_is_read_in_one_go(piece: str, name: str) -> None:
    """Minutes, as long as what is not closed was looked for again from each of its beginnings."""
    _, problems = parsed(load_dialects([name])[name], '{"hooks": [' + piece * LONG, NAMES[name])
    assert [problem.kind is ProblemKind.WHOLE_FILE for problem in problems] == [True]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('{"a": 1} // x', '{"a": 1}     '),
        ('{"a": "// no", /* b\n c */ "d": "/*"}', '{"a": "// no",     \n      "d": "/*"}'),
        ('["\\"// no"] /**/', '["\\"// no"]     '),
        ('["a" /* * / ** // */, "b"]', '["a"                , "b"]'),
        ('["open // text', '["open // text'),
        ("[1] /* open", "[1]        "),
    ],
)
def test_comments_become_blanks(text: str, plain: str) -> None:
    assert without_comments(text) == plain


def test_lines_of_keys_and_of_those_that_stand_twice() -> None:
    text = '{"hooks": {"A": [1]},\n "x": [\n{"y": 1,\n"y": 2}],\n "hooks": {"A": []}}'
    found = locate_values(text)
    assert found.lines["x", 0, "y"] == 4 and found.lines["hooks", "A"] == 5
    assert found.twice == {("x", 0, "y"): 4, ("hooks",): 5}
    deep = locate_values("[" * 500 + "]" * 500)
    assert max(map(len, deep.lines)) == DEPTH


def test_quotes_around_folders_of_a_long_command() -> None:
    assert quote_folders("a" * 500_000 + " $GEMINI_CWD/x") == "a" * 500_000 + ' "$GEMINI_CWD"/x'


# what is there and cannot be read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", [".cru/hooks.json", ".claude/settings.json", "crush.json", ".codex/config.toml"])
def test_a_file_in_another_encoding_is_a_problem(tmp_path: Path, encoding: str, name: str) -> None:
    here = where(tmp_path)
    path = here.root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes('{"hooks": []}'.encode(encoding))
    found = find_dialects(here, stamp_files(here))
    assert len(found) == 1
    given, problems = loader.read_sources(load_dialects(found).values(), about(here.cwd, root=here.root))
    [dialect] = load_dialects(found).values()
    broken = [problem for source in given for problem in dialect.parse(source, about(here.cwd)).problems]
    assert [problem.kind is ProblemKind.WHOLE_FILE for problem in (*problems, *broken)] == [True]


@pytest.mark.parametrize("text", [r'{"\u0068ooks": {}}', '{"Hooks": {}}', '{"HOOK": {}}'])
def test_the_word_may_be_written_in_other_ways(tmp_path: Path, text: str) -> None:
    here = where(tmp_path)
    (here.root / "crush.json").write_text(text)
    assert find_dialects(here, stamp_files(here)) == ["crush"]


@pytest.mark.parametrize(("text", "names"), [("", ["cru"]), (" \n", ["cru"]), ('{"hoks": []}', ["cru"])])
def test_a_file_that_is_there_for_hooks_only(tmp_path: Path, text: str, names: list[str]) -> None:
    here = where(tmp_path)
    (here.root / ".cru").mkdir()
    (here.root / ".cru" / "hooks.json").write_text(text)
    assert find_dialects(here, stamp_files(here)) == names


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    here = where(tmp_path)
    with open(here.root / "crush.json", "wb") as file:
        file.truncate(50 << 30)
    assert find_dialects(here, stamp_files(here)) == ["crush"]
    given, problems = loader.read_sources(load_dialects(["crush"]).values(), about(here.cwd, root=here.root))
    assert not given and [
        "it is larger than 1 MiB" in str(one) and one.kind is ProblemKind.WHOLE_FILE for one in problems
    ] == [True]
    (here.root / "crush.json").write_text('{"hooks": {}}' + " " * (MAX_CONFIG_BYTES - 13))
    given, problems = loader.read_sources(load_dialects(["crush"]).values(), about(here.cwd, root=here.root))
    assert len(given) == 1 and not problems


# expressions that take for ever ------------------------------------------------------------------------------------------------------

USUAL = [
    "^(Bash|Edit|MultiEdit|Write)$", "mcp__.*__.*delete.*user.*", r"mcp__\w+__\w*", "(foo|bar)?", "(?i)bash", r"[a-z]+_\d{2,4}",
    "^(?!Bash$).*$", "(?:ab){3}", r"(\w+\.)?x", "a{1000}", r"^mcp__(github|gitlab)__(create|delete)_\w+$", r"\[a-\]]", "[]a]+", "a{,b}",
    "|".join(f"tool_{n}" for n in range(90)), r"(?P<n>a)(?P=n)+", "[à-ü]+",
]  # fmt: skip
ENDLESS = [
    "(.*)*", "(.*)*(.*)*x!", "((a|.)+)+((.|b)*)*!", "(a|a)*b", "a?" * 30, "(a?){30}", ".*" * 5, "(?x)(.*) *", "(?x: (.*) *)",
    "(.*)(?#c)*", "(?:(?:){65000}){65000}", "((ab)*)+", r"(\w+\s?)*$", "(a*){2,}", "(?:a|b|ab)*c", "(?=(a+)+$)a", "(?>(a+)+b)",
    "(|a)*", "(.*){,}", "[]](.*)*", r"\((.*)*\)",
]  # fmt: skip


@pytest.mark.parametrize("pattern", USUAL)
def test_a_usual_matcher_passes(pattern: str) -> None:
    assert check_regex(pattern) == ""


@pytest.mark.parametrize("pattern", [*ENDLESS, "[\0-\U0010ffff]" * 100, r"[a-\uffff]", "a" * 1001])
def test_one_that_may_take_for_ever_does_not(pattern: str) -> None:
    assert check_regex(pattern)


def test_one_that_passes_by_a_hair_still_ends() -> None:
    import re

    pattern = ".*_" * 4 + "!"
    assert count_ways(pattern) == MOST_WAYS
    assert re.search(pattern, "_" * 40) is None


@pytest.mark.parametrize("name", NAMES)
def test_no_dialect_looks_for_such_a_matcher(name: str) -> None:
    event, one = EVENTS.get(name, "PreToolUse"), {"type": "command", "command": "true"}
    flat = {"command": "true", "matcher": "(.*)*x!"}
    group = flat if name in ("cru", "crush") else {"matcher": "(.*)*x!", "hooks": [one]}
    entries, problems = parsed(load_dialects([name])[name], {"hooks": {event: [group]}}, NAMES[name])
    told = [entry.problem for entry in entries] + [
        problem.text for problem in problems if problem.kind is ProblemKind.WHOLE_FILE
    ]
    assert len(told) == 1 and "repetition" in told[0]


# mistakes ---------------------------------------------------------------------------------------------------------------------------

ONE: dict[str, Any] = {"event": "tool:before_call", "command": "true"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", ["hook", "Hooks", "hoks"])
def test_a_misspelt_hooks_is_told_and_counted(name: str, key: str) -> None:
    _, problems = parsed(load_dialects([name])[name], {key: {"PreToolUse": []}}, NAMES[name])
    assert [(one.kind, one.hint) for one in problems] == [(ProblemKind.PART, "did you mean `hooks`?")]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_given_twice_is_told(name: str) -> None:
    text = '{"hooks": {"PreToolUse": []},\n "other": {"x": 1, "x": 2},\n "hooks": {}}'
    _, problems = parsed(load_dialects([name])[name], text, NAMES[name])
    told = [(one.line, one.text) for one in problems if one.kind is ProblemKind.PART]
    assert told == [(3, "`hooks` is given twice; only the last one counts")]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"on_error": True}, "`on_error` must be a text"), ({"on_error": []}, "`on_error` must be a text"),
        ({"matcher": 1}, "`matcher` must be a text"), ({"async": "no"}, "`async` must be true or false"),
        ({"once": "yes"}, "`once` must be true or false"), ({"enabled": 0}, "`enabled` must be true or false"),
        ({"if": ["bash:*"]}, "`if` must be a text"), ({"priority": "1"}, "`priority` must be a whole number"),
        ({"args": []}, "`args` is empty"), ({"env": {"A": {"x": 1}}}, "`env`: A must be a text"),
        ({"env": {"A": None}}, "`env`: A must be a text"), ({"cwd": 3}, "`cwd` must be a text"),
    ],
)  # fmt: skip
def test_an_entry_that_nobody_understands_does_not_run(more: dict[str, Any], told: str) -> None:
    entries, _ = parsed(load_dialects(["cru"])["cru"], {"hooks": [{**ONE, **more}]}, "hooks.json")
    assert [told in entry.problem for entry in entries] == [True]


@pytest.mark.parametrize(
    ("name", "handler", "group"),
    [
        ("claude", {"async": 1}, {}), ("claude", {"if": 5}, {}), ("claude", {}, {"matcher": 5}),
        ("codex", {"async": "yes"}, {}), ("codex", {}, {"matcher": []}), ("gemini", {"env": []}, {}),
        ("gemini", {"env": {"A": 1}}, {}), ("gemini", {}, {"matcher": 5}),
    ],
)  # fmt: skip
def test_nor_does_one_of_another_system(name: str, handler: dict[str, Any], group: dict[str, Any]) -> None:
    event = EVENTS.get(name, "PreToolUse")
    given = {"hooks": [{"type": "command", "command": "true", **handler}], **group}
    entries, _ = parsed(load_dialects([name])[name], {"hooks": {event: [given]}}, NAMES[name])
    assert ["must be" in entry.problem for entry in entries] == [True]


def test_a_strangers_words_are_one_line() -> None:
    assert in_a_line("a\x1b[31m\n\u202eb") == "a\\x1b[31m\\n\\u202eb"
    assert len(in_a_line("x" * 10_000)) == LINE == len(in_a_line("\x1b" * 10_000))


@pytest.mark.parametrize(
    "char", ["\u3164", "\u115f", "\uffa0", "\u2800", "\u034f", "\u00ad", "\u00a0", "\u200b", "\ufe0f", "\x7f", "\ue000"]
)
def test_what_cannot_be_seen_is_shown_by_its_number(char: str) -> None:
    assert visible(f"a{char}b") == f"a{ascii(char)[1:-1]}b"


def test_marks_need_a_letter_below_them() -> None:
    assert visible("e\u0301 日本 שָׁלוֹם नमस्ते") == "e\u0301 日本 שָׁלוֹם नमस्ते"
    assert visible("\u0301a \u0301") == "\\u0301a \\u0301"
    assert visible("x\u0336 a" + "\u0301" * 5) == "x\\u0336 a" + "\u0301" * 2 + "\\u0301" * 3
    assert visible("\u3164\u0301") == "\\u3164\\u0301" and visible("a\tb", keep="\t") == "a\tb"

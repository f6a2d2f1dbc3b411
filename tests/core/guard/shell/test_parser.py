"""The tree of shell source against its text, and against what bash makes of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.kit.waiting import PATIENCE

from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.syntax import (
    Compound,
    CompoundKind,
    PartKind,
    Redirection,
    ShellNode,
    SimpleCommand,
    Word,
    WordPart,
)
from cru.core.guard.shell.word_reader import DEEPEST

PIECES = [
    *"ab \t\n;&|<>()$'\"\\`{}*?[]#!=~1é\r", "&&", "||", "|&", ";;", "$(", "$((", "))", "${", "${a:-", "$a", "$'", '$"', "<(", ">(",
    "<<E\n", "<<-'E'\n", "\nE\n", "<<<", ">>", ">|", "2>&1", "&>", "\\\n", "if ", "then ", "elif ", "else ", "; fi", "while ", "do ",
    "; done", "for a in ", "case a in ", "esac", "{ ", "; }", "[[ ", " ]]", "(( ", "a() ", "function ", "coproc ", "coproc N ", "time ",
    "time -p ", "a=(", "a[1]=",
]  # fmt: skip
SOURCE = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def commands(source: str) -> list[list[str]]:
    """The words of all simple commands; the source must be read to its end."""
    parsed = parse(source)
    assert parsed.problem is None, (source, parsed.problem)
    return [
        [word.text for word in (*node.assignments, *node.words)]
        for node in parsed.script.walk()
        if isinstance(node, SimpleCommand)
    ]


def kinds(source: str) -> list[str]:
    return [node.kind.value for node in parse(source).script.walk() if isinstance(node, Compound)]


@given(SOURCE)
@example("$((" * 2000)
@example("{ " * 2000)
@example('"${a:-' * 2000)
@example("if a; then " * 2000)
@example("coproc " * 2000)
@example("f() " * 2000)
@example("! " * 20000)
@example("a=(" * 2000)
@example("<<E " * 2000 + "\n")
@settings(deadline=2000)
def test_any_text_is_read_and_every_place_is_right(source: str) -> None:
    parsed = parse(source)
    check_places(source, parsed.script)
    assert all(source[start] == "#" for start, _ in parsed.comments)
    assert parsed.problem is None or 0 <= parsed.problem.at <= len(source)


def check_places(source: str, node: ShellNode) -> None:
    here = source[node.start : node.end]
    if isinstance(node, Word) and node.source:
        assert node.source == here
    elif isinstance(node, WordPart) and node.value and (node.kind is not PartKind.TEXT or not node.quoted):
        assert node.value == here
    after = node.start
    for child in node.children():
        assert node.start <= child.start <= child.end
        assert child.end <= node.end or isinstance(
            child, WordPart | Redirection | SimpleCommand | Compound
        )  # here-documents
        assert child.start >= after or isinstance(node, Redirection)
        after = child.start if isinstance(child, Redirection) else min(child.end, node.end)
        check_places(source, child)


def test_what_stands_too_deep_is_a_problem() -> None:
    for opening in ("$(a ", "( ", "{ ", '"$(a ', "<(", "if ", "f() { "):
        parsed = parse(opening * (DEEPEST * 4))
        assert parsed.problem is not None and parsed.problem.at < len(opening) * (DEEPEST + 2)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a | b && ! c; d &", [["a"], ["b"], ["c"], ["d"]]),
        ("A=1 B+=2 c d=3", [["A=1", "B+=2", "c", "d=3"]]),
        ("a >x <y 2>&1 z", [["a", "z"]]),
        ("if a; then b; elif c; then d; else e; fi >x", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("while a; do b; done; until c\ndo\nd\ndone", [["a"], ["b"], ["c"], ["d"]]),
        ("for x in 1 $y; do a; done; for x; do b; done; for ((i=0; i<3; i++)); do c; done", [["a"], ["b"], ["c"]]),
        ("case $x in (a|b) c;; *) d;& e) ;;& esac", [["c"], ["d"]]),
        ("f() { a; }; function g { b; }; function h() ( c )", [["a"], ["b"], ["c"]]),
        ("(a; (b)) && { c; }", [["a"], ["b"], ["c"]]),
        ("[[ -f a && b =~ ^(c|d)$ ]] && e; (( x > (1 + 2) )) || f", [["e"], ["f"]]),
        ('a "$(b "$(c)")" `d` <(e) ${f:-$(g)} $((1 + $(h)))', [
            ["a", '$(b "$(c)")', "`d`", "<(e)", "${f:-$(g)}", "$((1 + $(h)))"], ["b", "$(c)"], ["c"], ["d"], ["e"], ["g"], ["h"],
        ]),
        ("cat <<A | b <<-'C'\n$(d) \"'\nA\n\t$(no)\n\tC\ne", [["cat"], ["d"], ["b"], ["e"]]),
        ("x=(a 'b c' $(d)) e", [["x=(a 'b c' $(d))", "e"], ["d"]]),
        ("a # b; c\nd#e", [["a"], ["d#e"]]),
        ("a \\\n b\\\nc", [["a", "bc"]]),
        ("coproc a; coproc { b; }; time -p a", [["a"], ["b"], ["a"]]),
        ("coproc N { a; }; coproc N (b); coproc N if c; then d; fi; coproc N e", [["a"], ["b"], ["c"], ["d"], ["N", "e"]]),
        ("coproc if { a; }; then b; fi; coproc N \\\n{ c; }; time -p; time ! time -p a", [["a"], ["b"], ["c"], [], ["a"]]),
        ("echo } { if ]] in", [["echo", "}", "{", "if", "]]", "in"]]),
    ],
)  # fmt: skip
@needs_bash
def test_what_is_read_and_accepted_by_bash(source: str, expected: list[list[str]]) -> None:
    assert commands(source) == expected
    assert subprocess.run(["bash", "-n", "-c", source], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "source",
    [
        "a && ", "a | ", "| a", "a;; b", "&& a", "; a", "(a", "a)", "{ a", "a; }", "if a; then b", "then a", "fi", "if a; fi b", "for 1 do",
        "case a in b) c", "a (b)", "a b() { c; }", "'a", '"a', "$(a", "`a", "${a", "$((1", "a >", "a > && b", "a < ;", "<<A", "[[ a",
        "a=(b", "f() a", "a &> 2>b", "a > {b}>c", "]] a", "f() g() { a; }", "f() coproc a", "a; in", "a b=(c)", "for a in b=(c)",
        "if a; then fi", "{ }", "( )", "while do a; done", "! | a", "a | ! b", "a=(b)c=(d)", "}", "done",
        "! & a", "! && a", "time & a", "(!)", "(a; time)", "case a in b) !;; esac",
    ],
)  # fmt: skip
@needs_bash
def test_what_bash_rejects_is_a_problem(source: str) -> None:
    assert parse(source).problem is not None
    done = subprocess.run(["bash", "-n", "-c", source], capture_output=True, text=True)
    assert done.returncode != 0 or "here-document" in done.stderr


@pytest.mark.parametrize(
    "source",
    [
        "<&-rm x", "a >&-b", "a 2>&-b",
        "a[1 2]=3 b", "a[;]=3 b", "x=1 >y a[ ]+=3 b", 'a["]" 1]=3 b', "a[b c", "a[[1] 2]=3", "$[1]", "$((a) | b)",
        '"${a:-\'}"', "${a:-{b}}", "$((\"1\"))", "cat <<A\nb\\\nA\nA", "cat <<A\nb", "a\\",
    ],
)  # fmt: skip
def test_what_shells_read_in_different_ways_is_a_problem(source: str) -> None:
    assert parse(source).problem is not None


@pytest.mark.parametrize("quoted", ["`a\\``", '"`a "b"`"'])
def test_commands_that_are_read_twice_are_not_read_here(quoted: str) -> None:
    part = parse(quoted).script.pipelines[0].commands[0].children()[0].children()[-1 if quoted[0] == "`" else 1]
    assert isinstance(part, WordPart) and part.kind is PartKind.BACKQUOTED and part.body is None


def test_all_that_stands_before_a_problem_is_there() -> None:
    parsed = parse("a 'b c' $(d); e \"$(f x) g")
    found = [[word.text for word in node.words] for node in parsed.script.walk() if isinstance(node, SimpleCommand)]
    assert [words[0] for words in found] == ["a", "d", "e", "f"] and found[3] == ["f", "x"]
    assert kinds("if a; then (b; {") == ["if", "(", "{"]
    assert [kind.value for kind in CompoundKind][:2] == ["(", "{"]


QUOTING = [
    "a b",
    "'a b' c",
    '"a b"c',
    "a\\ b",
    "a'b'\"c\"d",
    "''",
    '""',
    "'a\\'",
    '"a\\"b\\\\c\\d\\$\\`"',
    "\\'a\\'",
    "a\\\nb",
    '"a\\\nb"',
    "'a\\\nb'",
    "a#b",
    "'#'",
    "\\#a",
    '"a"#b',
    "a=b",
    "a==b",
    "{a}",
    "a{b",
    "}",
    "{",
    "!",
    "a!b",
    "%",
    "^a",
    "a,b",
    "a:b",
    "$",
    "a$",
    '"$"',
    "$%",
    '"a$"',
    "'$a'",
    "\\$a",
    "~a",
    "'~'",
    "a~",
    "é",
    "a\tb",
    "a\n",
    "'a\nb'",
    "-",
    "--",
    "+",
    "@",
    "a@b",
    "]",
    "[[",
    "]]",
    "if",
    "a\\;b",
    "';'",
    "\\&",
    "'|'",
    "\\\\",
    "\\a\\b",
    '"\'"',
    "'\"'",
    '"`"'.replace("`", "\\`"),
    "a''b",
    "=",
    "1",
    "1a",
    "a1>/dev/null",
    "a >/dev/null b",
    "a 2>/dev/null",
    "a\rb",
    "a\xa0b",
    "a\u3000b",
]


@needs_bash
@pytest.mark.parametrize("arguments", QUOTING)
def test_bash_makes_the_same_words(arguments: str, tmp_path: Path) -> None:
    script = f"probe() {{ printf '%s\\0' \"$@\" >&3; }}\nexec 3>&1\nprobe {arguments}"
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, cwd=tmp_path)
    assert commands(f"probe {arguments}")[0][1:] == done.stdout.decode().split("\0")[:-1]


RUNNING = [
    "aa ",
    "bb ",
    "cc ",
    "dd",
    " ",
    "\n",
    "; ",
    " && ",
    " || ",
    " | ",
    "'",
    '"',
    "\\",
    "#",
    " # ",
    "$",
    "$(aa)",
    "$(",
    ")",
    "`aa`",
    "`",
    "{ ",
    "; }",
    "(",
    "if aa; then ",
    "; fi",
    "else ",
    "! ",
    "time ",
    "time -p ",
    "coproc ",
    "coproc N { ",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    " >/dev/null ",
    "2>&1",
    "<(aa)",
    "x=1 ",
    "$x",
    "${x:-",
    "}",
    "[[ ",
    " ]]",
    "case aa in aa) ",
    ";; esac",
    "for x in aa; do ",
    "; done",
    "\t",
    "\\\n",
    "\r",
    "aa() ",
    "x=(aa bb)",
    "~",
    "%",
    "=",
]
_HANDLER = """exec 3>&1 >/dev/null 2>&1 </dev/null; PATH=/nowhere; set -f
command_not_found_handle() { local argv; printf -v argv '%s\\037' "$@"; printf '%s\\036' "$argv" >&3; return $((RANDOM % 2)); }
"""


def pattern(word: Word) -> str:
    """What the word may stand for; nothing at all if it is computed and not quoted."""
    parts = [
        re.escape(part.value) if part.kind is PartKind.TEXT and not {*"{~"} & {*part.value} else ".*"
        for part in word.parts
    ]
    text = "".join(parts) + "\x1f"
    is_text = any(part.quoted or (part.kind is PartKind.TEXT and part.value) for part in word.parts)
    return text if is_text else f"(?:{text})?"


@needs_bash
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(RUNNING), min_size=2, max_size=12).map("".join))
@example("aa $x\\\n")
@example('aa \'x y\' && bb | cc; $(dd "e\\"f")')
def test_bash_runs_nothing_that_the_tree_does_not_have(tmp_path_factory: pytest.TempPathFactory, source: str) -> None:
    parsed = parse(source)
    if parsed.problem is not None:
        return
    nodes = [node for node in parsed.script.walk() if isinstance(node, SimpleCommand)]
    known = [re.compile("".join(map(pattern, node.words)), re.DOTALL) for node in nodes]
    folder = tmp_path_factory.getbasetemp()  # what it redirects into is a file there
    done = subprocess.run(["bash", "--norc", "-c", _HANDLER + source], capture_output=True, timeout=10, cwd=folder)
    for argv in done.stdout.decode(errors="surrogateescape").split("\x1e")[:-1]:
        assert any(each.fullmatch(argv) for each in known), (source, argv)


@needs_bash
def test_the_probe_of_bash_sees_what_runs() -> None:
    done = subprocess.run(["bash", "--norc", "-c", _HANDLER + "aa 'b c'"], capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"aa\x1fb c\x1f\x1e"

"""`cru oq` on files and pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.kit import Done, HomeDir, cru, start, wait_until
from tests.kit.processes import carriers
from tests.kit.run import program


def oq(home: HomeDir, *words: str, given: str = "") -> Done:
    return cru("oq", *words, home=home, input=given)


def test_a_file_is_read_as_its_extension_says(home: HomeDir) -> None:
    (home.project / "data.yaml").write_text("items:\n  - name: a\n  - name: b\n")
    (home.project / "data.toml").write_text("[[items]]\nname = 'c'\n")
    (home.project / "data.toon").write_text("items[1]{name}:\n  d\n")
    (home.project / "data.json").write_text('{"items": [{"name": "e"}]}')
    files = [f"data.{format}" for format in ("yaml", "toml", "toon", "json")]
    done = oq(home, "-r", ".items[] | .name", *files)
    assert (done.code, done.out, done.err) == (0, "a\nb\nc\nd\ne\n", "")


CONTENT = [
    ('{"a": [1]}', {"a": [1]}),
    ("a:\n  - 1\n", {"a": [1]}),
    ("a: [1, x]\nb: 2\n", {"a": [1, "x"], "b": 2}),
    ("a = 1\n[b]\nc = 2\n", {"a": 1, "b": {"c": 2}}),
    ("[b]\nc = 2\n", {"b": {"c": 2}}),
    ("[[b]]\nc = 2\n", {"b": [{"c": 2}]}),
    ('"a" = 1\n', {"a": 1}),
    ('"a": 1\n', {"a": 1}),
    ("a[2]: 1,2\n", {"a": [1, 2]}),
    ("[\n 1\n]", [1]),
    ("[1]", [1]),
    ("\n\n 12", 12),
    ("- 1\n- 2", [1, 2]),
    ("\ufeff{}", {}),
    ("\ufeffa: 1\nb:\n  c: 2", {"a": 1, "b": {"c": 2}}),
]


@pytest.mark.parametrize(("text", "value"), CONTENT)
def test_a_pipe_is_read_as_its_content_says(home: HomeDir, text: str, value: object) -> None:
    done = oq(home, ".", given=text)
    assert (done.code, json.loads(done.out)) == (0, value), done.err


OUTPUT = [
    (("-c",), '{"a":[1.0,"x"]}\n'),
    ((), '{\n  "a": [\n    1.0,\n    "x"\n  ]\n}\n'),
    (("-o", "yaml"), "a:\n- 1.0\n- x\n"),
    (("-oyml",), "a:\n- 1.0\n- x\n"),
    (("--output-format=toml",), 'a = [1.0, "x"]\n'),
    (("-otoon",), "a[2]: 1,x\n"),
]


@pytest.mark.parametrize(("words", "text"), OUTPUT)
def test_results_are_written_in_the_format_that_was_asked_for(home: HomeDir, words: tuple[str, ...], text: str) -> None:
    assert oq(home, *words, ".", given='{"a": [1.0, "x"]}').out == text


SWITCHES = [
    (("-r", ".[]"), '["a\\nb", 1]', "a\nb\n1\n"),
    (("-j", ".[]"), '["a", "b"]', "ab"),
    (("-rc", ".[]"), '["a", [1, 2]]', "a\n[1,2]\n"),
    (("-sc", "."), "1 [2]\n{}", "[1,[2],{}]\n"),
    (("-nc", "[., 1]"), "not looked at", "[null,1]\n"),
    (("-n", "--arg", "x", "1", "--argjson", "y", "[1]", "-c", "[$x, $y]"), "", '["1",[1]]\n'),
    (("-c", "-o", "yaml", ".[]"), "[1, {}]", "1\n---\n{}\n"),
    (("-c", "."), "1 100000000000000000000000 1.10 1e1000 3.00000000000000000001",
     "1\n100000000000000000000000\n1.10\n1e1000\n3.00000000000000000001\n"),
    (("-c", "."), '"a\u2028b\x85c"', '"a\u2028b\x85c"\n'),
    (("-c", "--", "-1"), "1", "-1\n"),
    (("-c", "[env, $ENV]"), "1", "[{},{}]\n"),
    (("-p", "yaml", "-c", "."), "a: 1\n---\nb: 2\n", '{"a":1}\n{"b":2}\n'),
    (("-c", "def f: . + 1; f"), "1", "2\n"),
    (("empty",), "1", ""),
    ((".",), "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("words", "given", "out"), SWITCHES)
def test_its_switches_are_those_of_jq(home: HomeDir, words: tuple[str, ...], given: str, out: str) -> None:
    done = oq(home, *words, given=given)
    assert (done.code, done.out, done.err) == (0, out, "")


STATUS = [
    (("-e", "."), "true", 0),
    (("-e", "."), "1 false", 1),
    (("-e", "."), "null", 1),
    (("-e", "empty"), "1", 4),
    ((".",), "false", 0),
    ((".[",), "1", 3),
    ((".a",), "[1]", 5),
    (("error",), "1", 5),
    (("halt",), "1", 5),
    (("-n", "nan"), "", 5),
    (("-n", "{(1): 2}"), "", 5),
    (("-o", "toml", "."), "1", 5),
    (("-o", "toml", "."), "{} {}", 5),
    ((".",), "{", 2),
    ((".", "gone.json"), "", 2),
    ((".", "."), "", 2),
    ((), "", 2),
    (("-o", "xml", "."), "1", 2),
    (("--slrp", "."), "1", 2),
    (("--argjson", "x", "{", "."), "1", 2),
    (("--arg", "x"), "1", 2),
    (("--arg", "1x", "y", "."), "1", 2),
]


@pytest.mark.parametrize(("words", "given", "code"), STATUS)
def test_its_exit_status_is_that_of_jq(home: HomeDir, words: tuple[str, ...], given: str, code: int) -> None:
    done = oq(home, *words, given=given)
    assert done.code == code
    assert "Traceback" not in done.err and bool(done.err) == (code not in (0, 1, 4))


PLACES = [
    ("json", '{"a": 1}\n{"a":\n 2 3}\n', "x.json:3:4: comma or end of sequence expected"),
    ("json", '{"é": 1, x}', "x.json:1:10: value expected"),
    ("json", "[1", "x.json:1:3: comma or end of sequence expected"),
    ("jsonl", "1\n2\nx\n", "x.jsonl:3:1: value expected"),
    ("yaml", "a: 1\nb: [\n", "x.yaml:3: "),
    ("toml", "a = 1\nb = \n", "x.toml: not toml: Invalid value (at line 2, column 5)"),
    ("toon", "a: 1\nb[2]: 1\n", "x.toon: not toon: line 2: "),
]


@pytest.mark.parametrize(("kind", "text", "message"), PLACES)
def test_bad_input_is_told_with_its_place_and_the_next_file_follows(
    home: HomeDir, kind: str, text: str, message: str
) -> None:
    (home.project / f"x.{kind}").write_text(text)
    (home.project / "y.json").write_text('"next"')
    done = oq(home, "-r", 'empty, select(. == "next")', f"x.{kind}", "y.json")
    assert (done.code, done.out) == (2, "next\n")
    assert message in done.err


def test_bytes_that_are_no_text_are_told_with_their_place(home: HomeDir) -> None:
    for name, data in (("a.json", b'{}\n{"a": "\xff"}'), ("a.yaml", b"a: 1\nb: \xff")):
        (home.project / name).write_bytes(data)
        done = oq(home, "-c", ".", name)
        assert done.code == 2 and f"{name}:2:" in done.err and "not UTF-8 text" in done.err


def test_a_filter_that_is_none_is_drawn(home: HomeDir) -> None:
    done = oq(home, ".a | nope")
    assert done.code == 3
    assert "cru oq: undefined filter" in done.err and "1 │ .a | nope" in done.err


def test_one_document_that_fails_does_not_stop_the_others(home: HomeDir) -> None:
    done = oq(home, ".a", given='{"a": 1}\n[2]\n{"a": 3}\n')
    assert (done.code, done.out) == (5, "1\n3\n")
    assert done.err == 'cru: stdin:2: cannot index [2] with "a"\n'


@pytest.mark.slow
def test_a_filter_without_end_is_an_error_and_no_crash(home: HomeDir) -> None:
    for filter, given in (("def f: 1 + f; f", "1"), (".", "[" * 2_000_000)):
        done = oq(home, filter, given=given)
        assert (done.code, done.out) == (5, "")
        assert "nested too deep" in done.err


def test_documents_are_answered_as_they_come(home: HomeDir) -> None:
    with start("oq", "-c", ".n", home=home, stdin=True) as run:
        for n in range(3):
            run.write(json.dumps({"n": n}) + "\n")
            wait_until(lambda n=n: run.out == "".join(f"{i}\n" for i in range(n + 1)))  # type: ignore[misc]
        run.end_input()
        assert run.wait().code == 0


def test_a_reader_that_goes_ends_it_quietly(home: HomeDir) -> None:
    (home.project / "many.json").write_text("[1]\n" * 200_000)
    read, write = os.pipe()
    os.close(read)
    try:
        run = subprocess.run(
            [program(), "oq", ".", "many.json"],
            env=home.env, cwd=home.project, stdout=write, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert (run.returncode, run.stderr) == (0, b"")


def working(home: HomeDir) -> set[int]:
    return set(carriers(f"HOME={home.path}\0".encode(), {str(os.getpid())}))


@pytest.mark.sample(1)
@pytest.mark.real_start
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_ends_its_filter_too(home: HomeDir, number: int) -> None:
    with start("oq", "-n", "last(range(1e12))", home=home) as run:
        wait_until(lambda: len(working(home)) >= 2)
        os.kill(run.pid, number)
        wait_until(lambda: not working(home))
        assert run.wait().code in (-number, 128 + number)


ENDED_EARLY = """#!/usr/bin/env python3
import fcntl, os, time
real, first = fcntl.fcntl, os.getpid()
def late(*args):
    while os.getppid() == first:
        time.sleep(0.01)
    return real(*args)
fcntl.fcntl = late
from cru.faces.cli.main import main
main()
"""


@pytest.mark.real_start
def test_a_filter_whose_process_was_gone_before_it_began_ends_too(home: HomeDir) -> None:
    script = home.path / "late.py"
    script.write_text(ENDED_EARLY)
    script.chmod(0o755)
    with start("oq", "-n", "last(range(1e12))", home=home, script=script) as run:
        wait_until(lambda: len(working(home)) >= 2)
        run.kill()
        wait_until(lambda: not working(home))
    assert working(home) == set()


ENDLESS = """
import sys
from cru.faces.cli.flags import Parsed
from cru.faces.cli.oq import command
from cru.core.base.values.errors import CruError

command.SECONDS = 0.2
try:
    sys.exit(command.command(Parsed((), ()), ("-n", sys.argv[1])))
except CruError as error:
    sys.exit(error.message)
"""
"""The command in a process of its own, with less time than a person's filter has."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("filter", ["def f: f; f", "[repeat(1)]", "range(1e18) | select(. < 0)", "last(range(1e18))"])
def test_a_filter_that_never_ends_is_ended_and_says_so(home: HomeDir, filter: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", ENDLESS, filter], env=home.env, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "the filter was ended: it took more than 0.2 seconds for one document\n"

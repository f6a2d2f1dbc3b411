"""Long code and words of the workplace are found."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit import limits


def tree(root: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = root / name.replace("__", "/")
        path = path.with_name(path.name.replace("_md", ".md").replace("_py", ".py"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def function(lines: int, head: str = "def f():") -> str:
    return f"{head}\n" + "    x = 1\n" * (lines - 1)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (function(40), 0),
        (function(41), 1),
        (function(41, "async def f():"), 1),
        (function(41, "def f():  # long: a table"), 0),
        (function(41, "def f():  # long:"), 1),
        ("class A:\n" + "".join(f"    {line}\n" for line in function(41).splitlines()), 1),
        ("def f():\n" + '    """\n' + "    doc\n" * 5 + '    """\n' + "    x = 1\n" * 39, 0),
        ("@d\n" * 9 + function(40), 0),
    ],
    ids=["at the limit", "over it", "async", "excused", "no reason given", "a method", "docstring", "decorators"],
)
def test_function_lengths(source: str, found: int) -> None:
    assert len(list(limits.long_functions(source))) == found


def test_a_long_file_is_named_with_its_lines(tmp_path: Path) -> None:
    report = limits.check(tree(tmp_path, src__long_py="x = 1\n" * 401, src__short_py="x = 1\n"))
    assert report.offences == ["src/long.py: 401 lines, 400 allowed"]
    assert (report.files, report.longest, report.lines) == (2, "src/long.py", 401)


def test_other_peoples_code_may_be_long(tmp_path: Path) -> None:
    assert limits.check(tree(tmp_path, tests__programs__x_py=function(500))).offences == []


@pytest.mark.parametrize("source", ["one = 1\n", "def f(one: int) -> None: ...\n", "for one in (): ...\n"])
def test_a_vague_name_is_told(tmp_path: Path, source: str) -> None:
    report = limits.check(tree(tmp_path, src__a_py=source, tests__b_py=source))
    assert report.offences == ["src/a.py:1: `one` says nothing of what it holds"]


def test_a_class_name_has_one_meaning(tmp_path: Path) -> None:
    report = limits.check(tree(tmp_path, src__a_py="class A: ...\n", src__b_py="class _A: ...\nclass B: ...\n"))
    assert report.offences == ["src/b.py:1: there is another class _A at src/a.py:1"]


CLOCKS: dict[str, tuple[str, int]] = {
    "time that passed": ("start = time.monotonic()\n    work()\n    assert time.monotonic() - start < 5", 1),
    "processor time": (
        "start = process_time()\n    work()\n    spent = process_time() - start\n    assert spent < 1.5",
        1,
    ),
    "the least": ("start = time.perf_counter()\n    assert time.perf_counter() - start > 0.2", 1),
    "a time limit": ("end = time.monotonic() + 30\n    while time.monotonic() < end: pass", 1),
    "the clock of a loop": ("start = loop.time()\n    assert loop.time() - start < 1", 1),
    "a list of times": (
        "spent = [(time.thread_time(), x) for x in y]\n    assert [row for row in spent if row[0] > 2] == []",
        1,
    ),
    "two names at once": (
        "room, start = Room(), time.monotonic()\n    assert room.count == 1\n    assert 9 > start",
        1,
    ),
    "a function that measures": ("assert measured() < 2", 1),
    "no comparison": ("start = time.monotonic()\n    print(time.monotonic() - start)", 0),
    "a stamp": ("before = time.time()\n    assert before <= stamp()", 0),
    "a clock that the test holds": ("clock = Clock()\n    assert clock.monotonic() == 2.5", 0),
    "the same name elsewhere": ("assert start < 3", 0),
}


@pytest.mark.parametrize("name", CLOCKS)
def test_a_test_that_looks_at_a_clock_is_named(tmp_path: Path, name: str) -> None:
    body, count = CLOCKS[name]
    text = f"def measured() -> float:\n    return time.monotonic()\ndef other():\n    start = measured()\ndef test_x():\n    {body}\n"
    report = limits.check(tree(tmp_path, tests__test_py=text, tests__kit__waiting_py=text, src__a_py=text))
    assert len(report.offences) == count
    assert all(re.match(r"tests/test\.py:\d+: looks at a clock: `", offence) for offence in report.offences)


@pytest.mark.parametrize("word", limits.WORDS)
@pytest.mark.parametrize("place", ["src__a_py", "tests__data__b_md", "docs__c_md", "bench__d_py", "README_md"])
def test_words_of_the_workplace_are_found_everywhere(tmp_path: Path, word: str, place: str) -> None:
    report = limits.check(tree(tmp_path, **{place: f"# fine\n# see {word}x\n"}))
    assert len(report.offences) == 1 and ":2: names" in report.offences[0]


def test_a_file_that_cannot_be_parsed_is_named(tmp_path: Path) -> None:
    assert limits.check(tree(tmp_path, src__a_py="x = \n")).offences == ["src/a.py:1: not Python: invalid syntax"]


def test_bytes_that_are_no_text_are_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    assert limits.check(tmp_path).offences == []


def test_the_command_exits_with_one_and_names_the_place(tmp_path: Path) -> None:
    tree(tmp_path, src__a_py=function(41))
    root = Path(limits.__file__).parent.parent.parent
    command = [sys.executable, "-m", "tests.kit.limits"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (
        1,
        "src/a.py:1: f has 41 lines, 40 allowed\n1 files, longest src/a.py (41)\n",
    )


@pytest.mark.parametrize(("late", "offences"), [(5, 0), (6, 1)])
def test_more_imports_inside_of_functions_than_there_are_may_not_come(tmp_path: Path, late: int, offences: int) -> None:
    imports = "".join(f"def f{number}():\n    import os\n" for number in range(late))
    root = tree(tmp_path, src__a_py=imports + "import sys\n" + "x = 1\n" * (1001 - 2 * late))
    assert len([line for line in limits.check(root).offences if "imports inside" in line]) == offences

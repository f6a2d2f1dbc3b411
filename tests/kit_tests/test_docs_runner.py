"""Pages as programs: what runs, what is compared, what is generated."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import defstruct
from tests.kit import HomeDir, tables
from tests.kit.docs import DocsError, blocks, check_page, main, matches
from tests.kit.generated import GENERATORS, GeneratedError, renew

from cru.core.compose.start import every_struct

PAGE = """# Page
```sh test
echo one > file
echo started
```

```text output
started
```

Prose.

    ```python test
    print(open("file").read() * 2)
    ```

```text output
one
…
```

```sh
never run
```
"""


def write(home: HomeDir, text: str) -> Path:
    path = home.path.parent / "page.md"
    path.write_text(text)
    return path


def test_tested_blocks_run_in_order_in_one_folder(home: HomeDir) -> None:
    assert check_page(write(home, PAGE), home) == (2, 1)
    assert (home.project / "file").read_text() == "one\n"


@pytest.mark.parametrize("argument", ["--check", "--write"])
def test_a_part_that_cannot_be_made_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argument: str
) -> None:
    clock = defstruct("Clock", [("utc", bool, False)], frozen=True)
    module = ModuleType("cru.features.clock")
    table = defstruct("ClockTable", [("clock", clock, clock())], module=module.__name__)
    vars(module)["DOCS"] = {"clock": "how the time is written"}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(tables, "every_struct", lambda: (*every_struct(), table))
    (tmp_path / "README.md").write_text("<!-- generated: settings -->\n<!-- end generated -->\n")
    assert main([argument], tmp_path) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "README.md: `clock.utc` has no line in DOCS of cru.features.clock\n"


def test_indented_blocks_lose_their_indentation() -> None:
    assert blocks(PAGE)[1].text == 'print(open("file").read() * 2)\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```sh test\nfalse\necho no\n```\n", "page.md: line 2: exit status 1"),
        ("```sh test fails\ntrue\n```\n", "exit status 0"),
        ("```sh test\necho a\n```\n```text output\nb\n```\n", "expected\nb\n--- but it printed\na"),
        ("```sh test\necho a\n", "line 1: this block is not closed"),
        ("```python test\nraise ValueError('bad')\n```\n", "ValueError: bad"),
    ],
)
def test_a_page_that_is_wrong_is_named_with_its_line(home: HomeDir, text: str, message: str) -> None:
    with pytest.raises(DocsError) as wrong:
        check_page(write(home, text), home)
    assert message in str(wrong.value)


def test_a_block_may_be_meant_to_fail(home: HomeDir) -> None:
    assert check_page(write(home, "```sh test fails\necho no >&2; exit 2\n```\n```text output\nno\n```\n"), home) == (
        1,
        0,
    )


def test_output_belongs_only_to_the_block_before_it() -> None:
    text = "```sh test\necho a\n```\n```toml\nx = 1\n```\n```text output\na\n```\n"
    assert blocks(text)[0].expected is None


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\n", "a  \n\n", True),
        ("a … c\n", "a b c\n", True),
        ("a\n…\nz\n", "a\n1\n2\nz\n", True),
        ("a.c\n", "abc\n", False),
        ("a\n", "a\nb\n", False),
    ],
)
def test_wildcards(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def page_with(name: str) -> str:
    return f"before\n<!-- generated: {name} -->\nold\n<!-- end generated -->\nafter\n"


def test_a_generated_part_is_replaced_and_stays_so() -> None:
    new = renew(page_with("list"), "page.md", {"list": lambda: "new\n"})
    assert new == "before\n<!-- generated: list -->\nnew\n<!-- end generated -->\nafter\n"
    assert renew(new, "page.md", {"list": lambda: "new\n"}) == new


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (page_with("lst"), "nobody generates 'lst'; did you mean 'list'?"),
        (page_with("events"), "nobody generates 'events'; known: list"),
        ("<!-- generated: list -->\n", "has no end"),
        ("<!-- generated: list -->\n" + page_with("list"), "has no end"),
    ],
)
def test_a_part_that_cannot_be_generated_is_an_error(text: str, message: str) -> None:
    with pytest.raises(GeneratedError, match=message):
        renew(text, "page.md", {"list": lambda: "new"})


def test_check_finds_drift_and_write_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(GENERATORS, "list", lambda: "new")
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text(page_with("list"))
    assert [main([how], tmp_path) for how in ("--check", "--write", "--check")] == [1, 0, 0]
    assert "docs/page.md: drifted; run `make docs`" in capsys.readouterr().out
    assert "new" in page.read_text()


def test_another_argument_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--chek"], Path()) == 2
    assert "--write | --check" in capsys.readouterr().err

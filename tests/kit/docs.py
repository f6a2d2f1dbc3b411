"""The documentation as tests: README.md and docs/**/*.md are programs with prose around them.

    ```sh test            run by `sh -e` in the page's fresh home and folder, `cru` on PATH, a scripted model configured
    cru hello
    ```
    ```text output        optional, the next block: what it prints (both streams); … stands for anything
    Hello…
    ```

`python test` blocks run the same way. The blocks of one page follow each other like a person at a desk: files stay, `cd` and
variables do not. A block that ought to fail says `test fails`. Other sh and python blocks are counted as not run.

`python -m tests.kit.docs --check` fails if generated parts of pages have drifted; `--write` renews them (tests/kit/generated.py).
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from tests.kit.generated import GENERATORS, GeneratedError, renew
from tests.kit.home import HomeDir

from cru.core.base.values.errors import CruError
from cru.core.guard.sandbox.backends import CACHE, DetectionRecord, backend_path, describe_default
from cru.core.guard.sandbox.detect import detect

RUNNERS = {"sh": ("sh", "-e"), "python": (sys.executable,)}
# The model of the pages that configure none repeats one answer.
ANSWER = "loop: yes\n---\ntext: Hello from the scripted model.\n"
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
TIMEOUT = 60


class Block(Struct, frozen=True):
    """A fenced block. `words` are those of its info string (the language first), `line` is where its text begins; `expected` is
    the text of the `text output` block after it, None if there is none."""

    words: tuple[str, ...]
    text: str
    line: int
    expected: str | None = None

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def tested(self) -> bool:
        return self.language in RUNNERS and "test" in self.words


class DocsError(AssertionError):
    """A page is wrong; names file and line."""


def pages(root: Path) -> list[Path]:
    """README.md, AGENTS.md, docs/**/*.md and the guides that come with cru, as far as they exist."""
    guides = sorted((root / "src/cru/core/base/bundled" / "guide").glob("*.md"))
    return [
        p
        for p in (
            root / "README.md",
            root / "AGENTS.md",
            root / "SECURITY.md",
            *sorted((root / "docs").rglob("*.md")),
            *guides,
        )
        if p.exists()
    ]


def fences(text: str) -> Iterator[Block]:
    """Every fenced block, in order. An unclosed fence is an error."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not (opening := FENCE.match(line)):
            continue
        body: list[str] = []
        for _, inner in lines:
            if _closes(inner, opening["fence"]):
                break
            body.append(inner.removeprefix(opening["indent"]))
        else:
            raise DocsError(f"line {number}: this block is not closed")
        yield Block(tuple(opening["info"].split()), "".join(f"{inner}\n" for inner in body), number + 1)


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]}


def blocks(text: str) -> list[Block]:
    """The sh and python blocks of a page, each with its expected output."""
    found: list[Block] = []
    previous: Block | None = None
    for block in fences(text):
        if block.words == ("text", "output") and previous and previous.tested:
            found[-1] = Block(previous.words, previous.text, previous.line, block.text)
        elif block.language in RUNNERS:
            found.append(block)
        previous = block
    return found


OF_THE_MACHINE = re.compile(r"worked \d+ ms without a pause")
"""A line that a busy machine adds: no page is about it."""


def matches(expected: str, printed: str) -> bool:
    """Whether the output is as written: … is anything (also several lines), space at the end of a line does not count."""
    parts = (re.escape(part) for part in _trimmed(expected).split("…"))
    return re.fullmatch(".*?".join(parts), _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return "\n".join(line for line in lines if not OF_THE_MACHINE.search(line))


def run_block(block: Block, home: HomeDir) -> None:
    """Execute a block in this home; DocsError says what it printed instead."""
    command = [*RUNNERS[block.language], "-c", block.text]
    file = home.path.parent / "block.out"  # a pipe would wait for what the block leaves in the background
    with file.open("wb") as out:
        try:
            done = subprocess.run(
                command,
                cwd=home.project,
                env=home.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise DocsError(f"line {block.line}: still running after {TIMEOUT} s") from None
    printed = file.read_text(errors="replace")
    if (done.returncode != 0) != ("fails" in block.words):
        raise DocsError(f"line {block.line}: exit status {done.returncode}\n{printed}")
    if block.expected is not None and not matches(block.expected, printed):
        raise DocsError(f"line {block.line}: expected\n{block.expected}--- but it printed\n{printed}")


def confine(home: HomeDir) -> None:
    """As a reader has it by default, where anything confines, and has been told of it."""
    detection = asyncio.run(detect({"PATH": backend_path(home.env)}))
    if detection.backend:
        home.sandbox = ""
        record = DetectionRecord(last_notice=describe_default(detection))
        file = home.cru / CACHE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode(record))


def check_page(page: Path, home: HomeDir, configure: bool = True) -> tuple[int, int]:
    """Execute the tested blocks of a page in order; how many ran and how many did not. DocsError names page and line.
    `configure`: the home is fresh, and gets a model."""
    if configure:
        (home.path / "model.txt").write_text(ANSWER)
        home.configure(f'model = "scripted:{home.path}/model.txt"\n')
    confine(home)
    try:
        found = blocks(page.read_text(encoding="utf-8"))
        tested = [block for block in found if block.tested]
        for block in tested:
            run_block(block, home)
    except DocsError as error:
        raise DocsError(f"{page.name}: {error}") from None
    return len(tested), len(found) - len(tested)


def main(argv: Sequence[str], root: Path) -> int:
    """--write renews the generated parts, --check only names the pages that have drifted."""
    if list(argv) not in (["--write"], ["--check"]):
        print("usage: python -m tests.kit.docs --write | --check", file=sys.stderr)
        return 2
    drifted = 0
    for page in pages(root):
        old = page.read_text(encoding="utf-8")
        try:
            new = renew(old, page.name, GENERATORS)
        except (CruError, GeneratedError) as error:
            print(f"{page.relative_to(root)}: {error}", file=sys.stderr)
            return 1
        if new == old:
            continue
        drifted += 1
        what = "written" if argv[0] == "--write" else "drifted; run `make docs`"
        print(f"{page.relative_to(root)}: {what}")
        if argv[0] == "--write":
            page.write_text(new, encoding="utf-8")
    return 1 if drifted and argv[0] == "--check" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path.cwd()))

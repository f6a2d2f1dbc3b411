"""Changes as people read them."""

from __future__ import annotations

import pytest

from cru.core.revisions.diff import Version, render_diff
from cru.core.revisions.records import MISSING, FileKind, PathState


def side(data: bytes | None, mode: int = 0o644) -> Version:
    return Version(PathState(FileKind.FILE, str(data), len(data or b""), mode), data)


NOTHING = Version(MISSING, b"")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (side(b"a\nb\n"), side(b"a\nc\n"), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c"),
        (NOTHING, side(b"x\n"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x"),
        (side(b"x\n"), NOTHING, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x"),
        (side(b"x"), side(b"x\n"), "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x  (no newline at the end)\n+x"),
        (side(b"x\n"), side(b"x\n", 0o755), "--- a/f\n+++ b/f\nmode 644 → 755"),
        (side(b"\0"), side(b"\0\0"), "--- a/f\n+++ b/f\n(binary: 1 → 2 bytes)"),
        (side(None), side(b"x\n"), "--- a/f\n+++ b/f\n(file of 0 bytes → file of 2 bytes; not kept, so not compared)"),
        (side(b"a\n" * 20_000), side(b"b\n"), "--- a/f\n+++ b/f\n(too long to compare: 20,000 → 1 lines)"),
        (side(b"same"), side(b"same"), ""),
    ],
)
def test_a_change_reads_as_a_unified_diff(old: Version, new: Version, text: str) -> None:
    assert render_diff("f", old, new) == text


def test_what_is_shown_cannot_write_to_the_terminal() -> None:
    shown = render_diff("\x1b[2Jname", NOTHING, side("\x1b]0;x\x07\u202eabc\n".encode()))
    assert not any(char in shown for char in "\x1b\x07\u202e") and "abc" in shown

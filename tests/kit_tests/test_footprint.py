"""How much code a hooked tool call crosses may shrink, and not grow unseen."""

from __future__ import annotations

from tests.kit import HomeDir
from tests.kit.footprint import measure

FILES, FUNCTIONS = 52, 224
"""206 before what commands start was marked with a number, too, and before calls went on with earlier ones (decision 0048),
and before an end of the guardian was noticed; 50 files before it was asked whether a command runs in a git work tree (decision 0059),
51 before looking for a program on the PATH was told from running one;
217 functions before the gate noted files that run later, and before it was asked whether a command is confined and whether the paths
still lead where they led behind the handlers; 223 before keys of other programs were withheld."""


def test_a_hooked_tool_call_crosses_few_files_and_functions(home: HomeDir) -> None:
    footprint = measure(home)
    crossed = {file for file, _ in footprint.functions}
    assert {
        f"core/{name}" for name in ("events/chain.py", "hooks/run/command.py", "turn/tool_call.py", "tools/shell.py")
    } <= crossed
    assert len(crossed) <= FILES, sorted(crossed)
    assert len(footprint.functions) <= FUNCTIONS, footprint.functions

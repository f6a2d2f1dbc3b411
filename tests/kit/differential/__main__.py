"""`make differential`: plays the recorded cases to the programs themselves, where they are installed, and to cru; prints what differs.

usage: python -m tests.kit.differential [DIALECT[:CASE]…] [--peer-only] [--show]

--peer-only leaves cru out; --show prints what the program gave its hooks and the model. Programs are looked for below $BENCH_HOME/npm,
where `bench/install_peers.sh claude codex gemini` puts them; one that is missing is named. The network has only a loopback.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from tests.kit.differential import play_cru, play_peer
from tests.kit.differential.cases import Case, Table, tables
from tests.kit.differential.compare import Play, differences
from tests.kit.differential.peers import NPM, PEERS


def isolate(words: list[str]) -> None:
    """Go on in a network that is only the loopback."""
    if not os.environ.get("DIFFERENTIAL_NETNS"):
        unshare = [
            "unshare",
            "-n" if os.getuid() == 0 else "-rn",
            sys.executable,
            "-m",
            "tests.kit.differential",
            *words,
        ]
        os.execvpe("unshare", unshare, {**os.environ, "DIFFERENTIAL_NETNS": "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def main(words: list[str]) -> int:
    isolate(words)
    selected = [word for word in words if not word.startswith("--")]
    failed = 0
    for table in tables():
        cases = [case for case in table.cases if _is_selected(table, case, selected)]
        if cases:
            failed += play_table(table, cases, set(words))
    return 1 if failed else 0


def _is_selected(table: Table, case: Case, selected: list[str]) -> bool:
    return not selected or any(f"{table.dialect}:{case.id}".startswith(word) for word in selected)


def play_table(table: Table, cases: list[Case], words: set[str]) -> int:
    """How many cases differ from the record."""
    peer = PEERS.get(table.dialect)
    here = peer is not None and peer.program.exists()
    print(
        f"{table.program} {table.version}: {len(cases)} cases; "
        + ("" if here else "the program is NOT INSTALLED, only cru is played to")
    )
    failed = 0
    for case in cases:
        lines: list[str] = []
        with tempfile.TemporaryDirectory(dir=_own_folder() if here else None) as folder:
            if here and peer and not case.unplayed:
                shown = play_peer.play(case, table.dialect, peer, _made(folder, "peer"))
                lines += [f"  {table.program}: {line}" for line in differences(case.expect, shown)]
                if "--show" in words:
                    _show(shown)
            if "--peer-only" not in words:
                shown = play_cru.play(case, table.dialect, _made(folder, "cru"))
                lines += [f"  cru: {line}" for line in differences(case.expect_of_cru, shown)]
        note = f": not played to the program: {case.unplayed}" if case.unplayed else ""
        print(f"{'differs' if lines else 'ok     '} {case.id}{note}", *lines, sep="\n", flush=True)
        failed += bool(lines)
    print(f"{table.program}: {len(cases) - failed} of {len(cases)} as recorded\n")
    return failed


def _show(play: Play) -> None:
    for firing in play.firings:
        print(f"  {firing.event} < {msgspec.json.encode(firing.stdin).decode()}")
    for number, text in enumerate(play.requests, 1):
        print(f"  request {number}, its end: {text[-1000:]!r}")
    print(f"  exit {play.exit}: {play.shown[-3000:]}")


def _own_folder() -> Path:
    """Not below /tmp: some programs read no settings where others may write."""
    path = NPM.parent / "differential"
    path.mkdir(parents=True, exist_ok=True)
    return path


def _made(folder: str, name: str) -> Path:
    path = Path(folder, name)
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A case played to the program that it was recorded from."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.kit.differential.cases import Case
from tests.kit.differential.compare import Play
from tests.kit.differential.peers import NPM, Peer
from tests.kit.differential.world import ScriptedModel, firings, prepare
from tests.kit.home import home
from tests.kit.server import server

TIMEOUT = 90


def play(case: Case, dialect: str, peer: Peer, folder: Path) -> Play:
    model = ScriptedModel(case.script, peer.named, has_side_requests=True)
    here = home(folder)
    cwd = prepare(case, dialect, here)
    if peer.prepared:
        peer.prepared(here)
    shown, code = "", 0
    with server(model) as listening:
        base = listening.url.removesuffix("/v1")
        own = {name: value.format(url=base, home=here.path) for name, value in peer.env.items()}
        path = os.pathsep.join((str(NPM.parent / "bin"), "/usr/local/bin", "/usr/bin", "/bin"))
        env = {**here.env, "PATH": path, "SHELL": "/bin/bash", **own, **case.env}
        for number, prompt in enumerate((case.prompt, *case.prompts)):
            words = [str(peer.program), *peer.words(case, prompt, number > 0, listening.url, here.project)]
            code, text = _run(words, cwd, env, folder / f"peer-{number}.txt")
            shown += text
    return Play(here.path, here.project, firings(here), model.texts, code, shown)


def _run(words: list[str], cwd: Path, env: dict[str, str], file: Path) -> tuple[int, str]:
    """Exit status and what it printed; -1 after the time limit."""
    with file.open("wb") as out:
        popen = subprocess.Popen(
            words,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = popen.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(popen.pid, 9)
            popen.wait()
            code = -1
    return code, file.read_text(errors="replace")

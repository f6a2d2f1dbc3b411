"""`python -m tests.kit.footprint`: how much code a hooked tool call, and a plain run, cross.

The installed package plays a scripted turn. Of a call, every function counts, once, that is entered from the dispatch of
`tool:before_call` until that of `tool:completed`; of a run (`cru hi`), every function of it. What modules run while they are loaded does
not count.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from enum import Enum
from pathlib import Path

import msgspec
from msgspec import Struct
from tests.kit.home import HomeDir, home

# Runs in the child, around `cru`: a line `FOOTPRINT [[file, function], …]` on standard error at its end.
RECORDER = """
import os, sys, threading, json
import cru
import cru.core.conversations.line_file
import cru.core.turn.recorder
from cru.core.events.bus import Bus
# a busy machine may take so long that the age of the journal is looked at once more
cru.core.conversations.line_file.LOOK_SECONDS = float("inf")
# a text whose hash is low, as that of one prompt in 64, has old texts looked for
cru.core.turn.recorder.SWEEPING = ""
root = os.path.dirname(cru.__file__)
begin, seen, on = Bus.dispatch.__code__, set(), WHOLE
LOADING = os.path.join(root, "faces", "cli", "deferred_modules.py")
INNER = {"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"}

def loads(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False

def record(frame, event, argument):
    global on
    if event != "call":
        return
    code = frame.f_code
    if code is begin and not WHOLE:
        name = type(frame.f_locals["payload"]).__name__
        on = name == "ToolBeforeCall" or (on and name != "ToolCompleted")
    if on and code.co_filename.startswith(root) and code.co_name not in INNER and code.co_filename != LOADING and not loads(frame):
        seen.add((code.co_filename[len(root) + 1:], code.co_qualname))

real = os._exit
def leave(code):
    sys.setprofile(None)
    os.write(2, ("FOOTPRINT " + json.dumps(sorted(seen)) + "\\n").encode())
    real(code)

os._exit = leave
sys.argv = ["cru", *sys.argv[1:]]
threading.setprofile(record)
from cru.faces.cli.main import main
sys.setprofile(record)
main()
leave(0)
"""
CALL, ANSWER = 'call: bash {"command": "true"}\n---\ntext: done\n', "text: done\n"
HOOKED = '[hooks]\ndialects = ["claude"]\n'
LUA = 'cru.on("tool:before_call", function(ctx, event) end)\n'


class Setting(Enum):
    """What is measured: a hooked call with nothing around it; one as people have it (a git project, the sandbox, a rule, a handler in
    Lua beside the hook); a run that answers at once."""

    BARE = "a hooked call of bash, mode trust"
    USUAL = "a hooked call of bash in a git project, with sandbox, rule and Lua"
    ANSWER = "cru hi"


class Footprint(Struct, frozen=True):
    """functions: (file below src/cru, qualified name)"""

    functions: tuple[tuple[str, str], ...]

    @property
    def files(self) -> Counter[str]:
        """How many functions of each file."""
        return Counter(file for file, _ in self.functions)


def measure(here: HomeDir, setting: Setting = Setting.BARE) -> Footprint:
    """Play the turn in a fresh home."""
    model = here.path / "model.txt"
    model.write_text(ANSWER if setting is Setting.ANSWER else CALL)
    config = f'model = "scripted:{model}"\n'
    if setting is Setting.BARE:
        config += f'mode = "trust"\n{HOOKED}'
    elif setting is Setting.USUAL:
        config += f'{HOOKED}[permissions]\nallow = ["bash:true"]\n'
        here.sandbox = ""
        subprocess.run(["git", "init", "-q", str(here.project)], check=True, env=here.env)
        (here.cru / "plugins").mkdir(parents=True)
        (here.cru / "plugins" / "handler.lua").write_text(LUA)
    here.configure(config)
    if setting is not Setting.ANSWER:
        hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": f"cat > {here.path / 'ran.json'}"}]}
        settings = here.path / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_bytes(msgspec.json.encode({"hooks": {"PreToolUse": [hook]}}))
    run = subprocess.run(
        [sys.executable, "-c", f"WHOLE = {setting is Setting.ANSWER}\n{RECORDER}", "go"],
        # where no run that keeps nothing has been, whose remains a start clears away
        env={**here.env, "TMPDIR": str(here.path)}, cwd=here.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0 and (setting is Setting.ANSWER or (here.path / "ran.json").exists()), run.stderr
    return Footprint(msgspec.json.decode(run.stderr.rpartition("FOOTPRINT ")[2], type=tuple[tuple[str, str], ...]))


def main() -> None:
    for setting in Setting:
        with tempfile.TemporaryDirectory() as folder:
            footprint = measure(home(Path(folder)), setting)
        for file, number in sorted(footprint.files.items()):
            print(f"{number:4}  {file}")
        print(f"{setting.value}: {len(footprint.files)} files, {len(footprint.functions)} functions\n")


if __name__ == "__main__":
    main()

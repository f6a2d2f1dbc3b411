"""Every command that loads plugins ends with a signal, however they hang, and takes along what they started."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.core.plugins.lua.support import until_gone
from tests.kit import HomeDir, start
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.real_start

COMMANDS: list[tuple[str, ...]] = [
    ("plugin", "list"),
    ("plugin", "health"),
    ("fsm", "list"),
    ("lua", "=1"),
    ("plugin", "test", "hangs"),
    ("hello",),
]
WAITS = 'os.execute("echo $$ > %s; sleep 60 & echo $! > %s; wait")'


def plugin(home: HomeDir, name: str, text: str) -> Path:
    folder = home.cru / "plugins" / "hangs"
    (folder / "tests").mkdir(parents=True)
    (folder / name).write_text(text)
    return folder


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_plugin_that_waits_ends_at_once(home: HomeDir, command: tuple[str, ...], number: int) -> None:
    home.configure('model = "scripted:x"\n')
    shell, child = home.project / "shell", home.project / "child"
    code = WAITS % (shell, child)
    if command[:2] == ("plugin", "test"):
        plugin(home, "tests/x_test.lua", code)
    else:
        plugin(home, "init.lua", code)
    with start(*command, home=home) as run:
        pid = number_in(child)
        run.signal(number)
        done = run.wait(25)
    assert done.code == 128 + number and "Traceback" not in done.err
    until_gone(pid)
    until_gone(int(shell.read_text()))


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", [one for one in COMMANDS if one[:2] != ("plugin", "test")], ids=" ".join)
def test_a_plugin_that_blocks_does_not_make_it_immortal(home: HomeDir, command: tuple[str, ...]) -> None:
    home.configure('model = "scripted:x"\n')
    child = home.project / "child"
    plugin(home, "__init__.py", f"import time\nopen({str(child)!r}, 'w').write('1')\ntime.sleep(60)\n")
    with start(*command, home=home) as run:
        number_in(child)
        run.signal(signal.SIGTERM)
        done = run.wait(25)
    assert done.code == 143 and "did not come back" in done.err


def number_in(path: Path) -> int:
    wait_until(lambda: path.exists() and path.read_text().strip(), what="its begin")
    return int(path.read_text())

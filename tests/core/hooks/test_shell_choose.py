"""Which shell, by tables; and that each of them does what hooks need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.core.hooks.running import Hooks

from cru.core.hooks.dialects import load_dialect
from cru.core.hooks.errors import NoShell
from cru.core.hooks.launch import shells
from cru.core.hooks.model.mapping import System

GIT_BASH = r"C:\Program Files\Git\bin\bash.exe"
BASH = ("/bin/bash", "--norc", "--noprofile", "-c")

CASES: list[tuple[System, str, str, str, tuple[str, ...]]] = [
    ("posix", "bash sh brush", "crush", "", BASH),
    ("posix", "sh brush", "crush", "", ("/bin/sh", "-c")),
    ("posix", "brush", "cru", "", ("/bin/brush", "--norc", "--noprofile", "-c")),
    ("posix", "bash sh", "cru", "", BASH),
    ("posix", "bash sh", "claude", "", ("/bin/sh", "-c")),
    ("posix", "bash sh", "claude", "bash", BASH),
    ("posix", "pwsh", "claude", "powershell", ("/bin/pwsh", "-NoProfile", "-NonInteractive", "-Command")),
    ("posix", "bash sh", "codex", "", BASH),
    ("posix", "sh", "gemini", "", ("/bin/sh", "-c")),
    ("windows", f"{GIT_BASH}|brush", "crush", "", (GIT_BASH, "--norc", "--noprofile", "-c")),
    ("windows", "brush|bash", "crush", "", ("/bin/brush", "--norc", "--noprofile", "-c")),
    ("windows", "powershell|bash", "claude", "", ("/bin/powershell", "-NoProfile", "-NonInteractive", "-Command")),
    ("windows", "cmd", "codex", "", ("/bin/cmd", "/D", "/S", "/C")),
    ("windows", "pwsh|powershell", "gemini", "", ("/bin/pwsh", "-NoProfile", "-NonInteractive", "-Command")),
]


@pytest.mark.parametrize(("system", "there", "dialect", "named", "argv"), CASES)
def test_the_shell_of_a_dialect(system: System, there: str, dialect: str, named: str, argv: tuple[str, ...]) -> None:
    programs = there.split("|" if system == "windows" else None)

    def which(name: str) -> str | None:
        return (name if ":" in name else f"/bin/{name}") if name in programs else None

    assert shells.choose(system, which, load_dialect(dialect).launch.shells[system], named) == argv


def test_without_a_shell_it_says_what_to_install() -> None:
    with pytest.raises(NoShell) as caught:
        shells.choose("posix", lambda name: None, ("bash", "sh", "brush"))
    assert caught.value.message == "there is no bash or sh or brush to run it"
    assert caught.value.hint == 'install bash, or: pip install "cru[shell]"'


def test_a_shell_that_is_not_there_is_the_runs_error(tmp_path: Path) -> None:
    made = Hooks(tmp_path).run("echo hi", dialect="claude", shell="powershell", also={"PATH": "/nowhere"})
    assert (made.exit, made.error) == (None, "there is no powershell to run it (install powershell)")


def test_no_shell_is_a_login_shell() -> None:
    for arguments in shells.ARGUMENTS.values():
        assert not {"-l", "-lc", "--login", "-i"} & set(arguments)


BASHISMS = """
set -o pipefail
a=(x y z); echo "${#a[@]} ${a[1]}"
[[ abc =~ ^a(.)c$ && foo == f* ]] && echo "${BASH_REMATCH[1]}"
false | true; echo "pipefail $?"
while read -r line; do echo "got $line"; done < <(printf '1\\n2\\n')
cat | jq -r .a
exit 5
"""


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing is remembered of what this machine has."""
    shells.find_shell.cache_clear()
    yield
    shells.find_shell.cache_clear()


@pytest.mark.parametrize("shell", ["bash", "brush"])
def test_bash_and_its_stand_in_do_what_crushs_hooks_expect(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: None
) -> None:
    rules = replace(load_dialect("crush").launch, shells={"posix": (shell,)})
    hooks = Hooks(tmp_path, rules)
    made = hooks.run(BASHISMS, b'{"a":"b"}\n')
    assert (made.exit, made.stderr) == (5, "")
    assert made.stdout.splitlines() == ["3 y", "b", "pipefail 1", "got 1", "got 2", "b"]
    hooks.script("x", "echo no-shebang $1\n")
    hooks.script("d/x", "")
    assert hooks.out("./x 1; ./x 2 | cat") == "no-shebang 1\nno-shebang 2\n"
    assert (hooks.run("./d").exit, hooks.run("if then").exit, hooks.run("kill -TERM $$").exit) == (126, 1, -15)

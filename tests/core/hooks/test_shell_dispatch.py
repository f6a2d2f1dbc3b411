"""Files as commands: Crush's cases D1 to D18, and what stands around such a command."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.core.hooks.running import Hooks

from cru.core.hooks.errors import BadScript
from cru.core.hooks.launch import script_probe
from cru.core.hooks.launch.interpreters import insert_interpreters


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    return Hooks(tmp_path)


@contextmanager
def as_somebody() -> Iterator[Path]:
    """A folder of one's own, and file modes that mean something."""
    root = os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # its path fits in a shebang
    folder.chmod(0o777)
    if root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        shutil.rmtree(folder)


@pytest.mark.parametrize("word", ["./x", "../x", "/x"])
def test_d1_paths(word: str) -> None:
    assert script_probe.is_path(word)


@pytest.mark.parametrize("word", ["foo", "foo.sh", "jq", "", "C:\\x", "\\\\srv\\share", "sub/x"])
def test_d1_no_paths(word: str) -> None:
    assert not script_probe.is_path(word)


@pytest.mark.parametrize("word", ["C:\\x", "C:/x", "c:\\x", "Z:/x", "\\\\srv\\share"])
def test_d1_paths_of_windows(word: str) -> None:
    assert script_probe.is_path(word, windows=True)


def test_d1_a_drive_alone_is_none() -> None:
    assert not script_probe.is_path("C:", windows=True)


LINES: dict[bytes, tuple[str, ...]] = {
    b"#!/bin/bash": ("/bin/bash",),
    b"#!/bin/bash -x -y": ("/bin/bash", "-x -y"),
    b"#!/usr/bin/env bash": ("bash",),
    b"#!/bin/env bash": ("bash",),
    b"#!/usr/bin/env bash -x": ("bash", "-x"),
    b"#!/usr/bin/env bash -x -y": ("bash", "-x -y"),
    b"#!/usr/bin/env -S bash -x --noprofile": ("bash", "-x", "--noprofile"),
    b"#! /bin/bash": ("/bin/bash",),
    b"#!/bin/bash\r": ("/bin/bash",),
    b"#!/usr/bin/env python3\r": ("python3",),
    b"#!env bash": ("bash",),
}


@pytest.mark.parametrize("line", LINES)
def test_d2_shebangs(line: bytes) -> None:
    found = script_probe.read_shebang(line + b"\necho\n")
    assert (found.program, *found.args) == LINES[line]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"#!", "empty shebang"), (b"#!  \r\n", "empty shebang"), (b"#!/usr/bin/env", "env: missing program name"),
        (b"#!/usr/bin/env -S", "env -S requires a program"), (b"#!/usr/bin/env -x bash", "unsupported env flag: -x"),
    ],
)  # fmt: skip
def test_d2_shebangs_that_are_none(hooks: Hooks, line: bytes, why: str) -> None:
    with pytest.raises(BadScript) as caught:
        script_probe.read_shebang(line)
    assert caught.value.message == why
    hooks.script("x", line, 0o755)
    made = hooks.run("./x")
    assert (made.exit, made.stderr) == (126, f"./x: {why}\n")


@pytest.mark.parametrize("head", [b"a\0b", b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"])
def test_d3_binaries(head: bytes) -> None:
    assert script_probe.is_binary(head)


@pytest.mark.parametrize("head", [b"echo hi\n", b"M", b"", b"\x7fEL", "é".encode()])
def test_d3_texts(head: bytes) -> None:
    assert not script_probe.is_binary(head)


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_d4_without_a_shebang_the_shell_runs_it_with_its_arguments(hooks: Hooks, mode: int) -> None:
    hooks.script("x", 'a=(p "$1"); [[ ${a[0]} == p ]] && echo "$1 $2"\n', mode)
    assert hooks.out("./x alpha 'beta'") == "alpha beta\n"


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_d5_an_empty_file_succeeds_silently(hooks: Hooks, mode: int) -> None:
    hooks.script("x", "", mode)
    assert hooks.out("./x some arguments") == ""


def test_d6_a_script_before_a_pipe(hooks: Hooks) -> None:
    hooks.script("x.sh", "cat\n")
    assert hooks.out("./x.sh | jq -r .a", b'{"a":"b"}') == "b\n"


def test_d7_a_missing_file(hooks: Hooks) -> None:
    made = hooks.run("./x")
    assert made.exit == 127
    assert "./x: No such file or directory" in made.stderr


def test_d8_a_directory(hooks: Hooks) -> None:
    hooks.script("x/y", "")
    made = hooks.run("./x")
    assert (made.exit, made.stderr) == (126, "./x: is a directory\n")


@pytest.mark.parametrize("mode", [0o644, 0o755])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_d9_an_env_bash_script_runs(hooks: Hooks, mode: int, end: str) -> None:
    hooks.script("x", f"#!/usr/bin/env bash{end}echo [$0 $1] $BASH_VERSINFO #{end}", mode)
    assert hooks.out("./x a").startswith("[./x a] ")


def test_d10_the_exit_status_passes_through(hooks: Hooks) -> None:
    hooks.script("x", "#!/bin/sh\nexit 5\n")
    assert hooks.run("./x").exit == 5


@pytest.mark.parametrize("line", ["#!/no/such/interpreter-x", "#!/usr/bin/env interpreter-x", "#!interpreter-x"])
@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_d11_a_missing_interpreter(hooks: Hooks, line: str, mode: int) -> None:
    hooks.script("x", f"{line}\n", mode)
    made = hooks.run("./x")
    assert made.exit == 127
    assert "interpreter-x" in made.stderr
    assert "not found" in made.stderr or "No such file" in made.stderr


def test_d12_a_bare_name_is_no_file(hooks: Hooks) -> None:
    hooks.script("true", "echo wrong\n", 0o755)
    assert hooks.out("true") == ""


def test_d13_a_nul_behind_the_first_128_bytes_is_none(hooks: Hooks) -> None:
    hooks.script("x", b"echo hi\n" + b"#" * 150 + b"\nexit 0\n\0\0")
    assert hooks.out("./x") == "hi\n"


def test_d14_a_copied_binary_runs(hooks: Hooks) -> None:
    shutil.copy("/bin/echo", hooks.cwd / "x")
    assert hooks.out("./x hi") == "hi\n"


def test_d15_a_file_that_may_not_be_read(hooks: Hooks) -> None:
    with as_somebody() as folder:
        (folder / "x").write_text("echo hi\n")
        (folder / "x").chmod(0)
        with pytest.raises(BadScript, match="permission denied"):
            script_probe.find_interpreter_words("./x", f"{folder}/x", "/bin/sh")


def test_d15_a_program_that_may_be_run_but_not_read_is_the_kernels(hooks: Hooks) -> None:
    with as_somebody() as folder:
        (folder / "x").write_bytes(b"\x7fELF")
        (folder / "x").chmod(0o111)
        assert script_probe.find_interpreter_words("./x", f"{folder}/x", "/bin/sh") == ()


def test_d16_a_loop_of_links(hooks: Hooks) -> None:
    (hooks.cwd / "x").symlink_to("x")
    made = hooks.run("./x")
    assert (made.exit, made.stderr) == (126, "./x: too many levels of symbolic links\n")


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_d17_an_interpreter_that_lies_elsewhere_is_found_on_the_path(hooks: Hooks, mode: int) -> None:
    hooks.script("x", "#!/no/such/bash\necho $BASH_VERSINFO $1\n", mode)
    assert hooks.out("./x a").endswith(" a\n")


def test_d18_an_interpreter_in_a_folder_that_may_not_be_read_is_not_replaced(hooks: Hooks) -> None:
    with as_somebody() as folder:
        (folder / "locked").mkdir(0)
        (folder / "x").write_text(f"#!{folder}/locked/bash\n")
        with pytest.raises(BadScript, match="permission denied"):
            script_probe.find_interpreter_words("./x", f"{folder}/x", "/bin/sh")
        (folder / "locked").chmod(0o700)  # so that its owner can remove it


def test_d18_nor_one_that_is_no_program(hooks: Hooks) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # its path fits in a shebang
        Path(folder, "bash").write_text("not a program")
        hooks.script("x", f"#!{folder}/bash\necho hi\n")
        made = hooks.run("./x")
    assert made.exit == 126
    assert "Permission denied" in made.stderr


def test_a_pipe_is_not_opened(hooks: Hooks) -> None:
    os.mkfifo(hooks.cwd / "x")
    assert hooks.run("./x").exit == 126


def test_a_script_of_powershell_is_never_run_by_another_shell(hooks: Hooks) -> None:
    hooks.script("x.ps1", "echo hi\n")
    assert hooks.run("./x.ps1").exit == 126


def test_scripts_run_wherever_commands_begin(hooks: Hooks) -> None:
    hooks.script("a b.sh", "echo [$*]\n")
    hooks.script("sub/y", "#!/usr/bin/env bash\r\necho y #\r\n")
    command = 'X=1 "./a b.sh" "$(./sub/y)" && cd sub && ./y; ! "$ROOT"/sub/y | cat; if true; then ~/sub/y; fi; (exec ../sub/y)'
    assert hooks.out(command, also={"ROOT": str(hooks.cwd)}) == "[y]\ny\ny\ny\ny\n"


def test_what_is_not_at_a_commands_place_is_left_alone(hooks: Hooks) -> None:
    hooks.script("x", "echo wrong\n")
    for source in (
        "echo ./x", "case ./x in ./x) ./x;; esac", "[[ -f ./x && ./x == ./x ]]", "a=(./x)", "f() { ./x; }", "cat <<E\n./x\nE",
        "# ./x", "echo '; ./x'", "pushd sub; ./x", "eval cd sub; ./x", "true || cd sub || ./x", "$SOMETHING/x",
        "if true; then cd sub; fi; ./x", "cd $HOME/no; ./x", "sudo ./x", "`./x`", "echo $((1)) ; ./x", "'./x", "cat < ./x > ./x 2>> ./x",
    ):  # fmt: skip
        assert insert_interpreters(source, "/bin/bash", {"HOME": "/home/x"}, hooks.cwd) == source


def test_a_variable_that_the_command_sets_is_not_guessed(hooks: Hooks) -> None:
    hooks.script("x", "echo wrong\n")
    env = {"D": str(hooks.cwd)}
    for source in ("D=/tmp; $D/x", "read -r D; $D/x", "for D in a; do $D/x; done", "export D=/; ${D}/x"):
        assert insert_interpreters(source, "/bin/bash", env, hooks.cwd) == source
    assert insert_interpreters("$D/x", "/bin/bash", env, hooks.cwd) == "/bin/bash $D/x"


def test_a_script_that_the_kernel_runs_is_left_to_it(hooks: Hooks) -> None:
    for line in ("#!/bin/sh", "#!/bin/sh -e", "#!/usr/bin/env bash", "#!/usr/bin/env -S bash -e"):
        hooks.script("x", f"{line}\n", 0o755)
        assert insert_interpreters("./x", "/bin/bash", {}, hooks.cwd) == "./x"


def test_other_dialects_leave_files_to_the_shell(hooks: Hooks) -> None:
    hooks.script("x", "echo hi\n")
    made = hooks.run("./x", dialect="claude")
    assert made.exit == 126
    assert "Permission denied" in made.stderr

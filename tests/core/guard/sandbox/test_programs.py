"""What runs cru, and what is on the PATH, stays visible wherever it lies; what is secret stays hidden, and nothing there can be changed."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.core.guard.sandbox.escapes import SECRET
from tests.core.guard.sandbox.project_code import read_results
from tests.kit import Call, HomeDir, Reply, server
from tests.kit.sandbox import needs_sandbox

import cru
from cru.core.guard.rules.paths import PathRoots
from cru.core.guard.sandbox import SandboxSettings
from cru.core.guard.sandbox.backends import backend_path
from cru.core.guard.sandbox.confinement import SessionSandbox

INSTALLED = {
    "below /tmp": "{tmp}/cru",
    "with a space and an umlaut": "{tmp}/a b ü/cru",
    "in memory": "{shm}/cru",
    "on a disk": "{disk}/cru",
    "in a home below /tmp": "{home}/tools/cru",
    "around the home of cru": "{home}",
    "in the home of cru": "{home}/.cru/cru",
    "behind a link": "{tmp}/link/cru",
}
"""Where the environment and the source of cru lie. The home is below /tmp."""
PATHS = {
    "a folder below /tmp": ("{tmp}/tools", ("{tmp}/tools/tool",), ("{tmp}/file",)),
    "one with a space and an umlaut": ("{tmp}/a b ü/bin", ("{tmp}/a b ü/bin/tool",), ("{tmp}/file",)),
    "one in memory": ("{shm}/bin", ("{shm}/bin/tool",), ("{shm}/file",)),
    "an installation": ("{tmp}/whole/bin", ("{tmp}/whole/bin/tool", "{tmp}/whole/lib/data"), ("{tmp}/file",)),
    "a `bin` beside other things": ("{tmp}/mixed/bin", ("{tmp}/mixed/bin/tool",), ("{tmp}/mixed/file",)),
    "a link to a folder on a disk": ("{tmp}/far", ("{tmp}/far/tool",), ("{tmp}/file",)),
    "a link on a disk to a `bin` below /tmp": ("{disk}/near", ("{disk}/near/tool",), ("{tmp}/file",)),
    "a folder in the home": ("{home}/bin", ("{home}/bin/tool",), ("{home}/file", "{home}/.ssh/id_rsa")),
    "one beside secrets": ("{home}/.local/bin", ("{home}/.local/bin/tool",), ("{home}/.local/share/keyrings/key",)),
    "one in which secrets may come to lie": ("{home}/.config", (), ("{home}/.config/tool",)),
    "/": ("/", (), ("{tmp}/file", "{home}/.ssh/id_rsa")),
    "/tmp": ("/tmp", (), ("{tmp}/file", "{home}/.ssh/id_rsa")),
    "/tmp, spelled otherwise": ("/tmp/../tmp/./", (), ("{tmp}/file",)),
    "/dev/shm": ("/dev/shm", (), ("{shm}/file",)),
    "the home": ("{home}", (), ("{home}/file", "{home}/.ssh/id_rsa")),
    "a folder around the home": ("{tmp}", (), ("{tmp}/file", "{home}/file")),
    "keys": ("{home}/.ssh", (), ("{home}/.ssh/id_rsa",)),
    "a folder in keys": ("{home}/.ssh/bin", (), ("{home}/.ssh/bin/tool", "{home}/.ssh/id_rsa")),
    "a link to keys": ("{tmp}/to-keys", (), ("{tmp}/to-keys/id_rsa",)),
    "a link to the home": ("{tmp}/to-home", (), ("{tmp}/to-home/file", "{tmp}/to-home/.ssh/id_rsa")),
    "a link to the whole disk": ("{tmp}/to-root", (), ("{tmp}/to-root/{home}/.ssh/id_rsa",)),
    "the disk as a process has it": ("/proc/self/root{home}/.ssh", (), ("{home}/.ssh/id_rsa",)),
    "a link to it": ("{tmp}/to-proc", (), ("{tmp}/to-proc/{home}/.ssh/id_rsa", "{home}/file")),
    "the home of cru": ("{home}/.cru", (), ("{home}/.cru/keys.json",)),
    "a folder in it": ("{home}/.cru/bin", (), ("{home}/.cru/bin/tool", "{home}/.cru/keys.json")),
    "what a variable names as a secret": ("{tmp}/kube", (), ("{tmp}/kube/config",)),
    "a folder around that": ("{tmp}/around", (), ("{tmp}/around/kube", "{tmp}/around/file")),
    "an installation around that": ("{tmp}/around/bin", ("{tmp}/around/bin/tool",), ("{tmp}/around/kube",)),
    "a link in the project": ("{project}/link/bin", (), ("{tmp}/whole/bin/tool", "{tmp}/whole/lib/data")),
    "a file": ("{tmp}/file", (), ("{tmp}/file",)),
    "nothing": ("{tmp}/nowhere:relative:", (), ("{tmp}/file",)),
}
"""A PATH; what can be read; what cannot. Nothing that can be read can be written."""
FILES = (
    "{tmp}/tools/tool", "{tmp}/a b ü/bin/tool", "{shm}/bin/tool", "{tmp}/whole/bin/tool", "{tmp}/whole/lib/data", "{tmp}/mixed/bin/tool",
    "{disk}/far/tool", "{home}/bin/tool", "{home}/.local/bin/tool", "{tmp}/around/bin/tool", "{tmp}/around/lib/data", "{tmp}/near/bin/tool",
)  # fmt: skip
SECRETS = (
    "{tmp}/file", "{shm}/file", "{tmp}/mixed/file", "{home}/file", "{home}/.ssh/id_rsa", "{home}/.ssh/bin/tool",
    "{home}/.local/share/keyrings/key", "{home}/.config/tool", "{home}/.cru/keys.json", "{home}/.cru/bin/tool",
    "{tmp}/kube/config", "{tmp}/around/kube", "{tmp}/around/file",
)  # fmt: skip
LINKS = {
    "{tmp}/far": "{disk}/far", "{disk}/near": "{tmp}/near/bin", "{tmp}/to-keys": "{home}/.ssh", "{tmp}/to-home": "{home}",
    "{tmp}/to-root": "/", "{tmp}/to-proc": "/proc/self/root", "{tmp}/link": "{disk}", "{project}/link": "{tmp}/whole",
}  # fmt: skip


class Machine:
    """Folders in each of the places that the sandbox has for itself, and on a disk. The home is below /tmp, the project is not."""

    def __init__(self, tmp: Path, shm: Path, disk: Path) -> None:
        self.names = {"tmp": tmp, "shm": shm, "disk": disk, "home": tmp / "around-home" / "me", "project": disk / "p"}
        self.home, self.project = self.names["home"], self.names["project"]
        self.project.mkdir()
        for texts, text in ((FILES, "plain\n"), (SECRETS, SECRET)):
            for name in texts:
                file = Path(self.fill(name))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        for name, target in LINKS.items():
            os.symlink(self.fill(target), self.fill(name))

    def fill(self, text: str) -> str:
        return text.format(**self.names)

    @property
    def places(self) -> PathRoots:
        secrets = (self.fill("{tmp}/kube"), self.fill("{tmp}/around/kube"))
        return PathRoots(str(self.project), str(self.home / ".cru"), str(self.home), secrets=secrets)


@pytest.fixture
def machine() -> Iterator[Machine]:
    folders = [Path(tempfile.mkdtemp(dir=place, prefix="cru-test-")) for place in ("/tmp", "/dev/shm", "/var/tmp")]
    try:
        yield Machine(*folders)
    finally:
        for folder in folders:
            shutil.rmtree(folder)


def run_all(
    machine: Machine,
    path: str,
    commands: list[str],
    places: PathRoots | None = None,
    more: Mapping[str, str] | None = None,
) -> list[str]:
    """Run commands of one session, and return what each prints, with its errors."""
    env = {"HOME": str(machine.home), "TMPDIR": str(machine.names["disk"]), **(more or {})}
    bwrap = backend_path(os.environ)

    async def run() -> list[str]:
        sandbox = SessionSandbox(SandboxSettings(mode="on"), {**env, "PATH": f"{path}:{bwrap}"}, pytest.fail)
        outputs = []
        try:
            for command in commands:
                confined = await sandbox.confine(places or machine.places, ("/bin/sh", "-c", command))
                assert confined is not None
                done = subprocess.run(
                    confined.argv, env={**env, "PATH": bwrap}, pass_fds=confined.descriptors, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True
                )  # fmt: skip
                assert confined.settle() == []
                outputs.append(done.stdout)
        finally:
            await sandbox.close()
        return outputs

    return asyncio.run(run())


def content(machine: Machine) -> dict[str, str]:
    return {name: Path(machine.fill(name)).read_text() for name in (*FILES, *SECRETS)}


@needs_sandbox
@pytest.mark.parametrize("case", PATHS)
def test_a_path_shows_programs_and_nothing_secret(machine: Machine, case: str) -> None:
    path, shown, hidden = PATHS[case]
    before = content(machine)
    reads = [f"cat '{machine.fill(name)}'" for name in (*shown, *hidden)]
    writes = [f"echo x >> '{machine.fill(name)}'; echo x > '{machine.fill(name)}.new'" for name in shown]
    outputs = run_all(machine, machine.fill(path), [*reads, *writes])
    assert outputs[: len(shown)] == ["plain\n"] * len(shown)
    assert not any(SECRET in output or "plain" in output for output in outputs[len(shown) :])
    assert all(output.count("Read-only file system") == 2 for output in outputs[len(reads) :]), outputs
    assert content(machine) == before
    assert not any(Path(f"{machine.fill(name)}.new").exists() for name in FILES)


@needs_sandbox
@pytest.mark.skipif(not os.access("/run", os.W_OK), reason="nobody but root may write /run")
@pytest.mark.parametrize(("folder", "is_shown"), [("{run}", False), ("{run}/bin", True), ("{run}/tools", False)])
def test_of_the_folders_in_run_only_a_bin_is_shown(machine: Machine, folder: str, is_shown: bool) -> None:
    """Sockets of the user's services lie there; systems such as NixOS have programs there."""
    machine.names["run"] = Path(tempfile.mkdtemp(dir="/run", prefix="cru-test-"))
    try:
        for name in ("bin", "tools", "lib"):
            Path(machine.fill("{run}"), name).mkdir()
        place = machine.fill(folder)
        for name in ("{run}/lib/file", f"{folder}/tool"):
            Path(machine.fill(name)).write_text("plain\n")
        outputs = run_all(machine, place, [f"cat {place}/tool", machine.fill("cat {run}/lib/file")])
        assert (outputs[0] == "plain\n") == is_shown and "plain" not in outputs[1]
    finally:
        shutil.rmtree(machine.names["run"])


@needs_sandbox
def test_keys_in_a_cache_are_hidden_wherever_it_lies(machine: Machine) -> None:
    """A cache is mounted in the sandbox's own /tmp, too, if the home or a variable puts it there."""
    token, credentials = machine.fill("{tmp}/xdg/huggingface/token"), machine.fill("{home}/.cargo/credentials.toml")
    for file, text in ((token, SECRET), (credentials, SECRET), (machine.fill("{home}/.cargo/config"), "plain\n")):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(text)
    places = replace(machine.places, secrets=(*machine.places.secrets, token))
    commands = [
        f"cat {token}; ls {machine.names['tmp']}/xdg",
        f"cat {credentials}",
        machine.fill("cat {home}/.cargo/config"),
    ]
    outputs = run_all(machine, "/usr/bin", commands, places, {"XDG_CACHE_HOME": machine.fill("{tmp}/xdg")})
    assert SECRET not in str(outputs) and "huggingface" in outputs[0] and outputs[2] == "plain\n"


@needs_sandbox
def test_no_command_decides_where_the_next_one_has_what_is_mounted(machine: Machine) -> None:
    """In the session's own /tmp there are folders on the way to programs: a link in the place of one would lead mounts elsewhere."""
    subprocess.run(["git", "init", "-q", str(machine.project)], check=True)
    hooks = machine.project / ".git" / "hooks"
    before = sorted(os.listdir(hooks))
    way = machine.names["tmp"]
    up = f"../{machine.project.relative_to('/')}/.git/hooks"
    attacks = [
        f"mv {way} /tmp/moved && ln -s {up} {way}",
        f"rmdir {way}; rm -rf {way}; ln -s {up} {way}",
        f"mv {way}/whole {way}/moved && ln -s ../{up} {way}/whole",
    ]
    path = machine.fill("{tmp}/whole/bin:{tmp}/tools")
    outputs = run_all(machine, path, [*attacks, machine.fill("cat {tmp}/whole/lib/data; ls -l /tmp")])
    assert all("Read-only file system" in output or "busy" in output for output in outputs[:-1]), outputs
    assert outputs[-1].startswith("plain\n") and "->" not in outputs[-1]
    assert sorted(os.listdir(hooks)) == before


def install(folder: Path) -> Path:
    """Make an environment and a source of cru there, and return the interpreter."""
    shutil.copytree(Path(cru.__file__).parent, folder / "src" / "cru", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    others = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "cru.pth").write_text(f"{folder / 'src'}\n{others}\n")
    return folder / "venv" / "bin" / "python"


def play(here: HomeDir, python: Path, commands: list[str], env: Mapping[str, str]) -> list[str]:
    """What the model's commands gave in a run of this interpreter's cru, through a proxy, which that interpreter serves inside."""
    calls = [Call("bash", {"command": command}) for command in commands]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure("[sandbox]\nmode = 'on'\nhosts = ['pypi.org']\n", url=model.url)
        done = subprocess.run(
            [python, "-P", "-m", "cru.faces.cli.main", "-t", "-C", "c", "go"],
            env={**here.env, **env}, cwd=here.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    return read_results(here, "c")


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("case", INSTALLED)
def test_what_runs_cru_is_seen_and_not_changed(machine: Machine, case: str) -> None:
    folder = Path(machine.fill(INSTALLED[case]))
    python = install(folder)
    here = HomeDir(machine.home, machine.project)
    here.sandbox = ""
    source = folder / "src" / "cru" / "__init__.py"
    commands = [
        f"'{python}' -P -c 'import cru, sys; print(cru.__file__, sys.prefix)'",
        "command -v python",
        f"cat {machine.home}/.cru/keys.json {machine.home}/.ssh/id_rsa {machine.home}/file {machine.home}/.cru/contexts/c/*",
        f"echo x >> '{source}'; echo x > '{folder}/venv/new'",
    ]
    env = {"PATH": f"{python.parent}:{backend_path(os.environ)}", "TMPDIR": str(machine.names["disk"])}
    before = source.read_bytes()
    results = play(here, python, commands, env)
    assert results[0] == f"{source} {folder / 'venv'}"
    assert results[1] == str(python)
    assert SECRET not in results[2] and "entry_type" not in results[2]
    assert "Read-only file system" in results[3] and source.read_bytes() == before
    assert not (folder / "venv" / "new").exists()


@needs_sandbox
def test_of_another_project_only_its_programs_are_shown(machine: Machine) -> None:
    """A PATH may have the `bin` of a project; its other files, and whatever its links lead to, are not programs."""
    other = Path(machine.fill("{tmp}"), "other")
    for name in ("bin/tool", "lib/code", ".env", "config/key"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("plain\n")
    sockets = Path(machine.fill("{tmp}"), "sockets")
    sockets.mkdir()
    (sockets / "tool").write_text("plain\n")
    (other / "turned").symlink_to(sockets)
    path = f"{other}/bin:{other}/turned"
    files = [
        other / "bin/tool",
        other / "lib/code",
        other / ".env",
        other / "config/key",
        other / "turned/tool",
        sockets / "tool",
    ]
    outputs = run_all(machine, path, [f"cat '{file}'" for file in files])
    assert [output == "plain\n" for output in outputs] == [True, True, False, False, False, False]


@needs_sandbox
@pytest.mark.parametrize("when", ["while a command runs", "between two commands"])
def test_a_record_that_someone_removes_ends_nothing(machine: Machine, when: str) -> None:
    records = machine.home / ".cru"

    def remove() -> None:
        for record in records.rglob("*"):
            if record.suffix in (".json", ".idle"):
                record.unlink()

    async def run() -> list[bool]:
        env = {"HOME": str(machine.home), "TMPDIR": str(machine.names["disk"]), "PATH": backend_path(os.environ)}
        sandbox = SessionSandbox(SandboxSettings(mode="on"), env, pytest.fail)
        had_record = []
        try:
            for _ in range(3):
                confined = await sandbox.confine(machine.places, ("/bin/sh", "-c", "true"))
                assert confined is not None
                had_record.append(any(records.rglob("*.json")))
                if when == "while a command runs":
                    remove()
                assert confined.settle() == []
                if when == "between two commands":
                    remove()
        finally:
            await sandbox.close()
        return had_record

    assert asyncio.run(run()) == [True, True, True]

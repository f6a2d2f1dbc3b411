"""What must not appear is put aside, whatever it is made of, and when nobody was there to do it at the end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.playing import run
from tests.core.guard.sandbox.test_escapes import runs
from tests.kit import Call, Reply, cru, server, start, wait_until
from tests.kit.sandbox import needs_sandbox

from cru.core.base.process.marks import process_identity

DEEP = "python3 -c \"import os; [(os.mkdir(n), os.chdir(n)) for n in ['.husky', *['a'] * 950]]\""


@pytest.mark.slow
@needs_sandbox
def test_what_is_deep_does_not_keep_the_rest_from_being_put_aside(surroundings: Surroundings) -> None:
    """Since cru itself has written something, what is found is compared with that."""
    here = surroundings.here
    write = Call("write", {"file_path": ".idea/a/b.xml", "content": "good\n"})
    plant = Call("bash", {"command": f"{DEEP}; echo x > .envrc; mkdir .vscode; mkfifo .vscode/tasks.json"})
    with server([Reply(calls=[write]), Reply(calls=[plant]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    assert done.code == 0, done.err
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert "failed" not in results[1] and "was put aside, as" in results[1]
    for name in (".husky", ".envrc", ".vscode"):
        assert not (here.project / name).exists() and (here.project / f"{name}.from-sandbox").exists()
    assert (here.project / ".idea" / "a" / "b.xml").read_text() == "good\n"


def _aside(around: Surroundings) -> str:
    return str(around.here.project / ".envrc.from-sandbox")


@needs_sandbox
def test_what_a_killed_run_leaves_is_put_aside_at_the_next_start(surroundings: Surroundings) -> None:
    here = surroundings.here
    plant = Call("bash", {"command": "echo x > .envrc; touch started; sleep 987651"})
    with server([Reply(calls=[plant])]) as model:
        here.configure(url=model.url)
        with start("-t", "--sandbox", "go", home=here) as running:
            wait_until((here.project / "started").exists)
            assert cru("-L", home=here).err == "", "it runs yet"
            running.kill()
            wait_until(lambda: not runs("987651"))
            running.wait()
    done = cru("-L", home=here)
    assert _aside(surroundings) in done.err and not (here.project / ".envrc").exists()
    assert cru("-L", home=here).err == "" and not (here.cru / "sandbox").exists()


@pytest.mark.slow
@needs_sandbox
def test_what_a_running_command_has_planted_is_no_mount_of_another_one(surroundings: Surroundings) -> None:
    """It goes when either of them ends, and the other one would miss it."""
    here = surroundings.here
    calls = [
        Call(
            "bash",
            {"command": "echo a > .envrc; touch planted; until [ -e go ]; do sleep 0.02; done", "background": True},
        ),
        Call("bash", {"command": "until [ -e planted ]; do sleep 0.02; done; echo b >> .envrc && cat .envrc"}),
        *[Call("bash", {"command": f"echo {n} > .envrc; echo ran"}) for n in range(3)],
        Call("bash", {"command": "touch go"}),
    ]
    with server([*(Reply(calls=[call]) for call in calls), *[Reply("done")] * 3]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    assert done.code == 0, done.err
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert results[1].startswith("a\nb\n[what a command in the sandbox must not make was put aside"), results
    assert all(result.startswith("ran\n[what a command") for result in results[2:5]), results
    assert not (here.project / ".envrc").exists() and "bwrap:" not in "".join(results)


@pytest.mark.slow
@needs_sandbox
def test_what_cru_has_written_with_leave_is_guarded_though_a_command_began_before_it(
    surroundings: Surroundings,
) -> None:
    here = surroundings.here
    calls = [
        Call("bash", {"command": "touch begun; until [ -e go ]; do sleep 0.02; done", "background": True}),
        Call("bash", {"command": "until [ -e begun ]; do sleep 0.02; done"}),
        Call("write", {"file_path": ".envrc", "content": "good\n"}),
        Call("bash", {"command": "echo bad >> .envrc; cat .envrc"}),
        Call("bash", {"command": "touch go"}),
    ]
    with server([*(Reply(calls=[call]) for call in calls), *[Reply("done")] * 3]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    assert done.code == 0, done.err
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert "Read-only file system" in results[3] and "put aside" not in results[3], results
    assert (here.project / ".envrc").read_text() == "good\n"


ALLOW = "[permissions]\nallow = ['bash:sh plant']\n"
DETACHED = (
    "echo kept > /tmp/note; until [ -e go ]; do sleep 0.02; done; echo x > .envrc; cp /tmp/note wrote; "
    "until [ -e end ]; do sleep 0.02; done"
)


@needs_sandbox
def test_what_outlives_its_session_leaves_nothing_for_good(surroundings: Surroundings) -> None:
    here = surroundings.here
    temporary = {"TMPDIR": str(surroundings.temporary)}
    (here.project / "plant").write_text(DETACHED)
    call = Call("bash", {"command": "sh plant", "background": True, "detached": True})
    with server([Reply(calls=[call]), Reply("done")]) as model:
        here.configure(ALLOW, url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here, env=temporary)
    assert done.code == 0, done.err
    assert cru("-L", home=here, env=temporary).err == "", "it runs yet"
    (result,) = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    pid = int(result.partition("(process ")[2].partition(")")[0])
    (here.project / "go").touch()
    wait_until((here.project / "wrote").exists)
    wait_until(lambda: (here.project / "wrote").read_text() == "kept\n")
    assert cru("-L", home=here, env=temporary).err == "" and (here.project / ".envrc").exists(), "it runs yet"
    (here.project / "end").touch()
    wait_until(lambda: not process_identity(pid))
    done = cru("-L", home=here, env=temporary)
    assert _aside(surroundings) in done.err and not (here.project / ".envrc").exists()
    assert not (here.cru / "sandbox").exists() and list(surroundings.temporary.iterdir()) == []


@needs_sandbox
def test_what_could_outlive_its_session_and_ends_before_is_looked_after(surroundings: Surroundings) -> None:
    here = surroundings.here
    (here.project / "plant").write_text("echo x > .envrc")
    call = Call("bash", {"command": "sh plant", "background": True, "detached": True})
    wait = Call("bash", {"command": "for i in $(seq 500); do [ -e .envrc.from-sandbox ] && break; sleep 0.02; done"})
    with server([Reply(calls=[call]), Reply(calls=[wait]), Reply("waits"), Reply("done")]) as model:
        here.configure(ALLOW, url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    assert done.code == 0 and _aside(surroundings) in done.err, done
    assert not (here.cru / "sandbox").exists()


LEADING_OUT = {
    ".hg": "hgrc",
    ".jj": "repo/config.toml",
    "_darcs": "prefs/defaults",
    ".github": "instructions",
}


@needs_sandbox
@pytest.mark.parametrize("link", LEADING_OUT)
def test_nothing_outside_is_renamed_when_a_command_makes_a_link_there(surroundings: Surroundings, link: str) -> None:
    file = surroundings.out / "other" / LEADING_OUT[link]
    file.parent.mkdir(parents=True)
    file.write_text("kept")
    before = surroundings.outside()
    [(_, moved)] = run(surroundings, [f"ln -s {surroundings.out}/other {link}"])
    assert moved == [] and surroundings.outside() == before


AS_ANOTHER_USER = """
import os, sys
from cru.core.guard.sandbox.planted import put_aside, quarantine_risks
root = sys.argv[1]
os.chown(root, 65534, 65534)
os.setuid(65534)
for name in ("a", "b"):
    os.mkdir(f"{root}/{name}")
    open(f"{root}/{name}/config", "w").close()
    os.chmod(f"{root}/{name}", 0o555)
print(*put_aside({f"{root}/a/config": ""}, (root,), {}), *quarantine_risks({f"{root}/b/config": ["x"]}, (root,), {}))
print(*(f"{os.stat(f'{root}/{name}').st_mode & 0o777:o}" for name in ("a", "b")))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user, and may write everywhere itself")
def test_what_lies_in_a_folder_that_a_command_made_read_only_is_renamed(surroundings: Surroundings) -> None:
    folder = surroundings.out
    os.chmod(folder.parent, 0o755)
    done = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER_USER, folder],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert done.stdout.split() == [f"{folder}/a/config.from-sandbox", f"{folder}/b/config.from-sandbox", "555", "555"]

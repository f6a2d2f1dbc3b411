"""Commands of the model that try to leave the sandbox, through the real command."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.escapes import ESCAPES, SECRET
from tests.kit import Call, HomeDir, Reply, cru, pty, server, start, wait_until
from tests.kit.sandbox import needs_sandbox

from cru.core.conversations.home import private_parents

BATCH = 24


def run(around: Surroundings, commands: list[str], *flags: str, config: str = "", **more: object) -> list[str]:
    """What the tool gave for each of them; nothing outside may be changed, unless `config` says so."""
    results = _results(around, commands, *flags, config=config, **more)
    assert around.outside() == around.before or str(around.out) in config
    return results


def _temporary(around: Surroundings) -> dict[str, str]:
    return {"TMPDIR": str(around.temporary)}


def _results(around: Surroundings, commands: list[str], *flags: str, config: str = "", **more: object) -> list[str]:
    calls = [Call("bash", {"command": around.fill(command), **more}) for command in commands]
    replies = [Reply(calls=calls[start : start + BATCH]) for start in range(0, len(calls), BATCH)]
    with server([*replies, Reply("done")]) as model:
        around.here.configure(config, url=model.url)
        around.before = around.outside()
        done = cru(
            *(flags or ("-t", "--sandbox")), "-C", "c", "go", home=around.here, env=_temporary(around), timeout=120
        )
    assert (done.code, done.out) == (0, "done\n"), done.err
    results = [str(entry["content"]) for entry in around.here.log("c") if entry["entry_type"] == "tool_result"]
    assert len(results) == len(commands)
    return results


@pytest.mark.slow
@needs_sandbox
def test_no_way_out_has_an_effect_outside(surroundings: Surroundings) -> None:
    assert len(ESCAPES) >= 60
    results = run(surroundings, list(ESCAPES), "-t", "--sandbox")
    assert [command for command, result in zip(ESCAPES, results, strict=True) if SECRET in result] == []
    assert not surroundings.was_reached()
    assert surroundings.process.poll() is None
    assert not (surroundings.here.project / "late").exists(), "what a command leaves running ends with it"


@needs_sandbox
def test_work_in_the_project_is_what_it_was(surroundings: Surroundings) -> None:
    work = [
        "echo x > file && mkdir folder && mv file folder && cat folder/file",
        "git add -A && git -c user.name=a -c user.email=a@b commit -qm first && git log --oneline",
        "git checkout -q -b branch && git stash list && git worktree list",
        "echo kept > /tmp/note",
        "cat /tmp/note",
        "python3 -c 'import tempfile; tempfile.NamedTemporaryFile().write(b\"x\"); print(42)'",
        "echo $CRU_SANDBOX; ls /proc | grep -c '^[0-9]'",
        "git config user.name me",
        "cat ~/.ssh/id_rsa",
    ]
    results = run(surroundings, work, "-t", "--sandbox")
    assert results[0] == "x"
    assert "first" in results[1]
    assert results[4] == "kept", "one /tmp for all commands of a session"
    assert results[5] == "42"
    assert results[6].startswith("bubblewrap\n")
    assert "this ran in a sandbox" in results[7] and "outside_sandbox" in results[7]
    assert "this ran in a sandbox" in results[8]
    assert list(surroundings.temporary.iterdir()) == []


@needs_sandbox
def test_what_must_not_be_made_is_put_aside_and_told(surroundings: Surroundings) -> None:
    here = surroundings.here
    with server([Reply(calls=[Call("bash", {"command": "echo x > .envrc"})]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=here)
    aside = here.project / ".envrc.from-sandbox"
    assert aside.read_text() == "x\n"
    (result,) = (str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result")
    assert str(aside) in result
    assert done.err.count(f"was put aside, as {aside}: look at them") == 1


@needs_sandbox
def test_a_person_is_told_of_a_failure_that_it_may_have_been_the_sandbox(surroundings: Surroundings) -> None:
    here = surroundings.here
    commands = ["echo x > {out}/new", "exit 3"]
    calls = [Call("bash", {"command": surroundings.fill(command)}) for command in commands]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("-t", "-v", "--sandbox", "-C", "c", "go", home=here)
    first, second = (line for line in done.err.splitlines() if line.startswith("[tool bash failed"))
    assert "Read-only file system; the sandbox may be why: the model may ask to run it outside, or [sandbox]" in first
    assert "sandbox" not in second


@needs_sandbox
def test_limits_hold_and_all_of_a_command_ends_with_it(surroundings: Surroundings) -> None:
    limits = "[sandbox]\nmode = 'on'\nmemory_mb = 256\ncpu_seconds = 1\nfile_mb = 1\n"
    greedy = [
        "head -c 10000000000 /dev/zero > big",
        'python3 -c \'x = bytearray(1 << 30); print("TOP" + "-SECRET-9")\'',
        "while :; do :; done",
        "for i in 1 2 3 4 5 6 7 8; do setsid -f sh -c 'setsid sleep 987654 & sleep 987654'; done",
    ]
    results = run(surroundings, greedy, "-t", config=limits)
    assert (surroundings.here.project / "big").stat().st_size <= 1 << 20
    assert SECRET not in results[1] and "MemoryError" in results[1]
    assert "exit code" in results[2]
    assert not runs("987654")


def runs(word: str) -> bool:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if word.encode() in file.read().split(b"\0"):
                    return True
        except OSError:  # it has ended
            continue
    return False


@needs_sandbox
def test_settings_widen_and_narrow_it(surroundings: Surroundings) -> None:
    out = surroundings.out
    config = f"[sandbox]\nmode = 'auto'\nnetwork = true\nwritable = ['{out}']\nhidden = ['{surroundings.here.path}/.profile']\n# outside"
    commands = [
        "echo x > {out}/new && cat {out}/new",
        "cat {home}/.profile",
        "exec 3<>/dev/tcp/127.0.0.1/{port} && echo in",
    ]
    results = run(surroundings, commands, "-t", config=config)
    assert (out / "new").read_text() == "x\n"
    assert results[0] == "x"
    assert "old" not in results[1]
    assert results[2] == "in" and surroundings.was_reached()


OUTSIDE = 'echo x > "$HOME"/../out/new'
RULES = {
    "no rule": ("", False),
    "a rule about the command inside": (f"[permissions]\nallow = ['bash:{OUTSIDE}']", False),
    "a rule about all commands": ("[permissions]\nallow = ['bash', 'shell:*', '*:*']", False),
    "a rule about commands outside": (f"[permissions]\nallow = ['outside_sandbox:{OUTSIDE}']", True),
    "one about all of them": ("[permissions]\nallow = ['outside_sandbox:*']", True),
    "which a deny rule beats": ("[permissions]\nallow = ['outside_sandbox:*']\ndeny = ['bash:echo *']", False),
}


@pytest.mark.sample(4)
@needs_sandbox
@pytest.mark.parametrize("case", RULES)
@pytest.mark.parametrize("mode", ["ask", "trust"])
def test_a_run_outside_needs_a_rule_that_says_so(surroundings: Surroundings, case: str, mode: str) -> None:
    rules, may_run = RULES[case]
    call = Call("bash", {"command": OUTSIDE, "outside_sandbox": True})
    with server([Reply(calls=[call]), Reply("done")]) as model:
        surroundings.here.configure(rules, url=model.url)
        done = cru("--sandbox", "--mode", mode, "-C", "c", "go", home=surroundings.here)
        assert b"outside_sandbox" in model.requests[0].raw
        assert (
            b"It runs in a sandbox: only the project, but for what guards it, and a /tmp of its own"
            in model.requests[0].raw
        )
    assert done.code == 0, done.err
    assert (surroundings.out / "new").exists() == may_run


@needs_sandbox
def test_commands_in_the_background_are_confined_too(surroundings: Surroundings) -> None:
    command = surroundings.fill("echo x > {out}/new; echo x > .envrc; cat {home}/.ssh/id_rsa; touch tried; exit 3")
    wait = "until [ -e tried ]; do sleep 0.02; done"
    replies = [Reply(calls=[Call("bash", {"command": command, "background": True})])]
    replies += [Reply(calls=[Call("bash", {"command": wait})])]
    with server([*replies, Reply("waits"), Reply("done"), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        before = surroundings.outside()
        done = cru("-t", "--sandbox", "-C", "c", "go", home=surroundings.here)
    assert done.code == 0, done.err
    assert not any(b"left running" in request.raw for request in model.requests), "its namespace ends with it"
    assert surroundings.outside() == before
    outputs = [path.read_text() for path in surroundings.here.cru.rglob("output*") if path.is_file()]
    assert outputs and not any(SECRET in text for text in outputs)


def test_without_anything_that_confines(surroundings: Surroundings) -> None:
    """On demand no run begins; `auto` tells it and goes on."""
    here = surroundings.here
    fake = surroundings.out / "bwrap"
    fake.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    env = {"PATH": f"{surroundings.out}:{here.env['PATH']}"}
    call = Reply(calls=[Call("bash", {"command": "echo ran"})])
    with server([call, Reply("done")]) as model:
        here.configure(url=model.url)
        refused = cru("-t", "--sandbox", "-C", "c", "go", home=here, env=env)
        assert refused.code == 1 and model.requests == []
        told = cru("-t", "-s", "sandbox.mode=auto", "-C", "c", "go", home=here, env=env)
        assert b"sandbox" not in model.requests[0].raw
    assert "the sandbox does not work here" in refused.err and "No permissions to create new namespace" in refused.err
    assert "Traceback" not in refused.err
    assert told.code == 0 and told.err.count("commands run without a sandbox") == 1
    (result,) = [e["content"] for e in here.log("c") if e["entry_type"] == "tool_result"]
    assert result.startswith("ran\n[commands run without a sandbox: ")


def test_a_project_cannot_switch_it_off(surroundings: Surroundings) -> None:
    (surroundings.here.project / ".cru").mkdir()
    (surroundings.here.project / ".cru" / "config.toml").write_text("[sandbox]\nmode = 'off'\n")
    with server([Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        done = cru("--hooks", "none", "-C", "c", "go", home=surroundings.here)
    assert "sandbox" in done.err and "ignored" in done.err


@needs_sandbox
def test_without_the_flag_nothing_of_it_is_loaded_or_offered(surroundings: Surroundings) -> None:
    with server([Reply(calls=[Call("bash", {"command": "echo $CRU_SANDBOX-"})]), Reply("done")]) as model:
        surroundings.here.configure("[sandbox]\nmode = 'on'\n", url=model.url)
        done = cru("-t", "--no-sandbox", "-C", "c", "go", home=surroundings.here)
        assert b"outside_sandbox" not in model.requests[0].raw
    assert done.code == 0
    assert [e["content"] for e in surroundings.here.log("c") if e["entry_type"] == "tool_result"] == ["-"]


@needs_sandbox
def test_a_command_at_its_limit_may_tidy_up_before_it_ends(surroundings: Surroundings) -> None:
    command = "trap 'echo tidied > tidied; exit 0' TERM; while :; do sleep 0.05; done"
    (result,) = run(surroundings, [command], "-t", "--sandbox", timeout=0.5)
    assert "ran longer than 0.5 s" in result
    assert (surroundings.here.project / "tidied").read_text() == "tidied\n"


@needs_sandbox
def test_a_confined_command_ends_with_a_run_that_is_killed(surroundings: Surroundings) -> None:
    command = "setsid -f sleep 987655; touch started; sleep 987655"
    with server([Reply(calls=[Call("bash", {"command": command})]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        env = _temporary(surroundings)
        with start("-t", "--sandbox", "go", home=surroundings.here, env=env) as running:
            wait_until((surroundings.here.project / "started").exists)
            assert runs("987655")
            running.kill()
            wait_until(lambda: not runs("987655"))
    (left,) = private_parents(env)
    assert len(os.listdir(left)) == 1
    assert cru("-L", home=surroundings.here, env=env).code == 0
    assert not os.path.exists(left)  # the next start clears it away


@needs_sandbox
def test_a_worktree_commits_into_its_repository_and_nowhere_else(surroundings: Surroundings) -> None:
    here, env = surroundings.here, surroundings.here.env
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=here.project, check=True, env=env)
    main = here.project.rename(here.project.with_name("main"))
    subprocess.run(["git", "worktree", "add", "-q", str(here.project)], cwd=main, check=True, env=env)
    commands = [
        "echo x > file; git add file; git -c user.name=a -c user.email=a@b commit -qm second; git log --oneline",
        "git config core.hooksPath evil; echo x > ../main/.git/hooks/pre-commit; echo x > ../main/file; echo x > .git",
    ]
    results = _results(surroundings, commands)
    assert "second" in results[0]
    assert "hooksPath" not in (main / ".git" / "config").read_text()
    assert not (main / ".git" / "hooks" / "pre-commit").exists() and not (main / "file").exists()
    assert (here.project / ".git").read_text().startswith("gitdir: ")


@needs_sandbox
def test_a_git_file_that_names_a_folder_of_somebody_else_opens_nothing(surroundings: Surroundings) -> None:
    project, other = surroundings.here.project, surroundings.out / "repository"
    shutil.move(project / ".git", other)
    (project / ".git").write_text(f"gitdir: {other}\n")
    _results(surroundings, ["git add -A; echo x > {out}/repository/HEAD; echo x > {out}/repository/new"])
    assert (other / "HEAD").read_text().startswith("ref: ") and not (other / "new").exists()


def test_a_run_that_a_confined_command_starts_takes_the_name_of_the_sandbox_for_no_setting(home: HomeDir) -> None:
    done = cru("/mode", home=home, env={"CRU_SANDBOX": "bubblewrap"})
    assert (done.code, done.err) == (0, "")


@needs_sandbox
def test_an_answer_about_a_run_outside_is_kept_for_runs_outside(surroundings: Surroundings) -> None:
    """`docker` is a script on the PATH; the question offers to keep a rule only for a command that the project does not decide."""
    here = surroundings.here
    (surroundings.out / "docker").write_text('#!/bin/sh\necho "$1 $CRU_SANDBOX-" >> "$(dirname "$0")/new"\n')
    (surroundings.out / "docker").chmod(0o755)
    env = {"PATH": f"{surroundings.out}:{here.env['PATH']}"}
    ask, other = (Call("bash", {"command": command, "outside_sandbox": True}) for command in ("docker ps", "make x"))
    with server([Reply(calls=[ask, other]), Reply("ok"), Reply(calls=[ask, other]), Reply("ok")]) as model:
        here.configure(url=model.url)
        with pty("--sandbox", "hi", home=here, env=env) as terminal:
            terminal.expect("s, p and a keep the rule  outside_sandbox:docker ps")
            terminal.expect("no > ")
            terminal.send("a")
            terminal.expect("bash: make x")
            terminal.expect("no > ")
            terminal.send("?")
            terminal.expect("is decided by")
            terminal.expect("no > ")
            terminal.send("n")
            assert terminal.wait() == 0
        done = cru("--sandbox", "-C", "c", "again", home=here, env=env)
    assert done.code == 0, done.err
    assert (surroundings.out / "new").read_text() == "ps -\nps -\n"
    assert "outside_sandbox:docker ps" in (here.cru / "grants.json").read_text()
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert "nobody can be asked here" in results[1]

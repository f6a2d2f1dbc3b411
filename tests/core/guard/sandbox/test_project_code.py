"""What a project brings runs in the sandbox, too: command hooks, plugins that are programs, MCP servers; through the real command."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.escapes import SECRET
from tests.core.guard.sandbox.project_code import KINDS, PROJECT_ESCAPES, read_results, write_user_hook
from tests.core.guard.sandbox.test_escapes import runs
from tests.kit import Call, Reply, cru, server
from tests.kit.sandbox import needs_sandbox
from tests.kit.scripts import python_word

FLAGS = ("-t", "--hooks", "all", "-C", "c", "go")


def run(around: Surroundings, kind: str, commands: list[str], *flags: str, config: str = "") -> tuple[list[str], str]:
    """What each call gave, and what the person was told."""
    code = KINDS[kind]
    around.here.configure(config)
    code.install(around.here)
    calls = [code.call(around.fill(command)) for command in commands]
    with server([Reply(calls=calls), Reply("done")]) as model:
        around.here.configure(config, url=model.url)
        around.before = around.outside()
        done = cru(*flags, *FLAGS, home=around.here, env={"TMPDIR": str(around.temporary)}, timeout=120)
    assert (done.code, done.out) == (0, "done\n"), done.err
    results = read_results(around.here, "c")
    assert len(results) == len(commands)
    return results, done.err


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_that_a_project_brings_has_an_effect_outside(surroundings: Surroundings, kind: str) -> None:
    results, told = run(
        surroundings, kind, ["echo $CRU_SANDBOX", "echo y > made; cat made", *PROJECT_ESCAPES], "--sandbox"
    )
    assert surroundings.outside() == surroundings.before
    assert [c for c, result in zip(PROJECT_ESCAPES, results[2:], strict=True) if SECRET in result] == []
    assert not surroundings.was_reached()
    assert surroundings.process.poll() is None
    assert not runs("987657"), "nothing goes on when it has ended"
    assert "<bubblewrap\n>" in results[0] and "<y\n>" in results[1]
    assert (surroundings.here.project / "made").read_text() == "y\n"
    assert "was put aside, as" in told and (surroundings.here.project / ".envrc.from-sandbox").exists()
    assert list(surroundings.temporary.iterdir()) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", KINDS)
def test_without_the_sandbox_it_runs_as_ever(surroundings: Surroundings, kind: str) -> None:
    results, _ = run(surroundings, kind, ["echo $CRU_SANDBOX-; echo x > {out}/new"], "--no-sandbox")
    assert "<-\n>" in results[0]
    assert (surroundings.out / "new").read_text() == "x\n"


@needs_sandbox
def test_a_hook_of_the_persons_own_is_not_confined(surroundings: Surroundings) -> None:
    here = surroundings.here
    with server([Reply(calls=[Call("bash", {"command": "true"})]), Reply("done")]) as model:
        here.configure(url=model.url)
        write_user_hook(here, surroundings.fill("echo $CRU_SANDBOX- > {out}/new"))
        done = cru("--sandbox", *FLAGS, home=here)
    assert done.code == 0, done.err
    assert (surroundings.out / "new").read_text() == "-\n"


SESSION_HOOK = """
import json, os, sys
payload = json.load(sys.stdin)
if payload["hook_event_name"] == "PreToolUse":
    sys.exit("go" not in open(payload["transcript_path"]).read())
code = "export FROM_HOOK=$CRU_SANDBOX" + chr(10) + "{ echo ran >> {out}/new; } 2>/dev/null || :"
print(code, file=open(os.environ["CLAUDE_ENV_FILE"], "w"))
"""


@needs_sandbox
def test_a_hook_keeps_its_contract_inside(surroundings: Surroundings) -> None:
    """It reads the transcript and sets variables, which commands inside have; what it wrote is run nowhere else."""
    here = surroundings.here
    (here.project / "hook.py").write_text(surroundings.fill(SESSION_HOOK))
    command = f"{python_word()} -IS $CLAUDE_PROJECT_DIR/hook.py"
    hooks = {event: [{"hooks": [{"type": "command", "command": command}]}] for event in ("SessionStart", "PreToolUse")}
    (here.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    calls = [
        Call("bash", {"command": "echo $FROM_HOOK-"}),
        Call("bash", {"command": "echo $FROM_HOOK-", "outside_sandbox": True}),
    ]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here.configure("[permissions]\nallow = ['outside_sandbox:*']\n", url=model.url)
        done = cru("--sandbox", *FLAGS, home=here)
    assert done.code == 0 and "failed" not in done.err, done.err
    assert read_results(here, "c") == ["bubblewrap-", "-"]
    assert not (surroundings.out / "new").exists()


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_hook_that_the_sandbox_has_hindered_says_so(surroundings: Surroundings, status: int) -> None:
    """One that denies (2) says it to the model, too."""
    here = surroundings.here
    command = surroundings.fill(f"echo x > {{out}}/new || {{ echo not allowed >&2; exit {status}; }}")
    hook = {"type": "command", "command": command}
    (here.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    with server([Reply(calls=[Call("bash", {"command": "echo ran"})]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("--sandbox", *FLAGS, home=here)
    assert done.code == 0 and "it ran in the sandbox, as what a project brings does" in done.err, done.err
    (result,) = read_results(here, "c")
    assert ("not allowed" in result and "it ran in the sandbox" in result) == (status == 2)
    assert (result == "ran") == (status != 2)


@needs_sandbox
def test_a_hook_that_goes_on_for_too_long_ends_with_all_that_it_started(surroundings: Surroundings) -> None:
    here = surroundings.here
    slow = "trap 'echo tidied > tidied; exit 0' TERM; setsid -f sleep 987656; while :; do sleep 0.02; done"
    hook = {"type": "command", "command": slow, "timeout": 0.3}
    (here.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    with server([Reply(calls=[Call("bash", {"command": "true"})]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("--sandbox", *FLAGS, home=here)
    assert done.code == 0, done.err
    assert (here.project / "tidied").read_text() == "tidied\n"
    assert not runs("987656")


@needs_sandbox
def test_what_cru_itself_writes_meanwhile_stays(surroundings: Surroundings) -> None:
    """A server of the project runs all the time: what the model's tool writes with leave is not taken for its doing."""
    here = surroundings.here
    KINDS["server"].install(here)
    calls = [
        KINDS["server"].call("mkdir .husky; echo x > .husky/a"),
        Call("write", {"file_path": ".envrc", "content": "good\n"}),
    ]
    with server([Reply(calls=[calls[0]]), Reply(calls=[calls[1]]), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("--sandbox", *FLAGS, home=here)
    assert done.code == 0, done.err
    assert (here.project / ".envrc").read_text() == "good\n"
    assert not (here.project / ".husky").exists() and (here.project / ".husky.from-sandbox").is_dir()


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("words", [("hooks", "test", "PreToolUse", "--json"), ("mcp", "test", "own")])
def test_commands_that_try_what_a_project_brings_confine_it(surroundings: Surroundings, words: tuple[str, ...]) -> None:
    here = surroundings.here
    here.configure("[sandbox]\nmode = 'on'\n")
    (here.project / "server.py").write_text(f"open({str(surroundings.out / 'new')!r}, 'w')")
    (here.project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"own": {"command": sys.executable, "args": ["server.py"]}}})
    )
    hook = {"type": "command", "command": surroundings.fill("echo x > {out}/new")}
    (here.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    cru("mcp", "accept", "own", home=here)
    review = cru("hooks", "review", home=here).out
    cru("hooks", "review", "--trust", re.findall(r"[^\s(]+@[0-9a-f]+", review)[0], home=here)
    done = cru(*words, home=here)
    assert "Read-only file system" in done.out + done.err, done
    assert not (surroundings.out / "new").exists()


@pytest.mark.slow
@needs_sandbox
def test_doctor_says_what_is_covered(surroundings: Surroundings) -> None:
    surroundings.here.configure("[sandbox]\nmode = 'auto'\n")
    done = cru("doctor", "--offline", home=surroundings.here)
    assert "the hooks, programs and MCP servers of a project are confined by bubblewrap" in done.out


@pytest.mark.slow
@needs_sandbox
def test_a_hook_of_a_sub_agent_works_in_its_copy_of_the_project(surroundings: Surroundings) -> None:
    """A hook that formats what was written: the sub-agent's worktree lies outside of the project."""
    here = surroundings.here
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    (here.project / "a.txt").write_text("old\n")
    format_file = (
        'cd "$(python3 -c \'import json,sys; print(json.load(sys.stdin)["cwd"])\')" && echo formatted >> a.txt'
    )
    hook = {"type": "command", "command": f"{format_file}; echo x > {surroundings.out}/new"}
    (here.project / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": [hook]}]}})
    )
    subprocess.run([*git, "add", "-A"], cwd=here.project, check=True, env=here.env)
    subprocess.run([*git, "commit", "-qm", "first"], cwd=here.project, check=True, env=here.env)
    task = Call("task", {"agent": "general", "prompt": "write", "isolation": "worktree"})
    write = Call("write", {"file_path": "a.txt", "content": "new\n"})
    with server([Reply(calls=[task]), Reply(calls=[write]), Reply("written"), Reply("done")]) as model:
        here.configure(url=model.url)
        done = cru("--sandbox", *FLAGS, home=here, env={"TMPDIR": str(surroundings.temporary)})
    assert done.code == 0, done.err
    (result,) = read_results(here, "c")
    assert "+formatted" in result, result
    assert (here.project / "a.txt").read_text() == "old\n" and not (surroundings.out / "new").exists()

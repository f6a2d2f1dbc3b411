"""Who says nothing about the sandbox: confined where that works, with the network, told once."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.project_code import KINDS, read_results
from tests.faces.test_start import HEAVY, loaded
from tests.kit import Call, HomeDir, Reply, cru, server, trust_project
from tests.kit.run import program
from tests.kit.sandbox import needs_sandbox
from tests.kit.server import Server

from cru.core.guard.rules.paths import SECRET_AT_HOME
from cru.core.guard.sandbox.backends import backend_path, find_backend_program

TRY = "echo $CRU_SANDBOX-; echo x > {out}/new; echo y > made; cat made"
TOLD = "they can write only to the project and a private /tmp"
MISSING = "commands run without a sandbox"
LOADED_AT_USE = {
    "cru.core.guard.sandbox.confinement",
    "cru.core.guard.sandbox.profile",
    "cru.core.guard.sandbox.detect",
    "cru.core.guard.rules.kept_rules",
}


def play(around: Surroundings, *words: str, config: str = "", **env: str) -> tuple[str, str, Server]:
    """One command of the model: its result, what the person was told, and the requests."""
    command = Call("bash", {"command": around.fill(TRY)})
    with server([Reply(calls=[command]), Reply("done")]) as model:
        around.here.configure(config, url=model.url)
        done = cru("-t", "-C", "c", *words, "go", home=around.here, env=env)
    assert (done.code, done.out) == (0, "done\n"), done.err
    return read_results(around.here, "c")[-1], done.err, model


def is_described(model: Server) -> bool:
    return all("outside_sandbox" in str(request.body["tools"]) for request in model.requests)


def fake_bubblewrap(around: Surroundings) -> tuple[dict[str, str], Path]:
    """A PATH with a bwrap that works until the file is there."""
    switch, fake = around.out.parent / "broken", around.out.parent / "bin" / "bwrap"
    real = find_backend_program(backend_path(around.here.env))
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\n[ -e {switch} ] && {{ echo "No permissions" >&2; exit 1; }}\nexec "{real}" "$@"\n')
    fake.chmod(0o755)
    return {"PATH": f"{fake.parent}:{around.here.env['PATH']}"}, switch


@needs_sandbox
def test_a_command_is_confined_and_that_is_told_once(surroundings: Surroundings) -> None:
    result, told, model = play(surroundings)
    assert (
        result.startswith("bubblewrap-\n")
        and "Read-only file system" in result
        and "\ny\n[this ran in a sandbox" in result
    )
    assert told.count(TOLD) == 1 and "--no-sandbox" in told and is_described(model)
    result, told, model = play(surroundings)
    assert result.startswith("bubblewrap-\n") and "sandbox" not in told and is_described(model)
    assert not (surroundings.out / "new").exists()


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("kind", KINDS)
def test_so_is_what_a_project_brings(surroundings: Surroundings, kind: str) -> None:
    KINDS[kind].install(surroundings.here)
    call = KINDS[kind].call(surroundings.fill(TRY))
    with server([Reply(calls=[call]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        surroundings.before = surroundings.outside()
        done = cru("-t", "--hooks", "all", "-C", "c", "go", home=surroundings.here)
    assert done.code == 0, done.err
    (result,) = read_results(surroundings.here, "c")
    assert "bubblewrap-" in result and "Read-only file system" in result
    assert surroundings.outside() == surroundings.before


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_project_brings_may_be_left_out(surroundings: Surroundings, kind: str) -> None:
    KINDS[kind].install(surroundings.here)
    calls = [KINDS[kind].call(surroundings.fill(TRY)), Call("bash", {"command": "echo $CRU_SANDBOX-"})]
    with server([Reply(calls=calls), Reply("done")]) as model:
        surroundings.here.configure("[sandbox]\nproject = false\n", url=model.url)
        done = cru("-t", "--hooks", "all", "-C", "c", "go", home=surroundings.here)
        assert is_described(model)
    assert done.code == 0 and "sandbox" not in done.err, done.err
    result, confined = read_results(surroundings.here, "c")
    assert "<-\ny\n>" in result and (surroundings.out / "new").read_text() == "x\n"
    assert confined == "bubblewrap-" or kind == "hook"  # that one refuses every command
    assert "confines commands of the model\n" in cru("permissions", home=surroundings.here).out
    assert "the model's commands are confined by" in cru("doctor", "--offline", home=surroundings.here).out


@needs_sandbox
@pytest.mark.parametrize(
    ("config", "is_reached"),
    [("", True), ("[sandbox]\nwritable = ['~/scratch']\n", True), ("[sandbox]\nnetwork = false\n", False),
     ("[sandbox]\nhosts = ['pypi.org']\n", False), ("[sandbox]\nmode = 'on'\n", False)],
)  # fmt: skip
def test_the_network_is_open_unless_something_narrows_it(
    surroundings: Surroundings, config: str, is_reached: bool
) -> None:
    (surroundings.here.path / "scratch").mkdir()
    call = Call("bash", {"command": surroundings.fill("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")})
    with server([Reply(calls=[call]), Reply("done")]) as model:
        surroundings.here.configure(config, url=model.url)
        cru("-t", "-C", "c", "go", home=surroundings.here)
    assert ("reached" in read_results(surroundings.here, "c")[0].splitlines()) == is_reached
    assert surroundings.was_reached() == is_reached


@needs_sandbox
@pytest.mark.parametrize(
    ("words", "config", "env"),
    [(("--no-sandbox",), "", {}), ((), "[sandbox]\nmode = 'off'\n", {}), ((), "", {"CRU_SANDBOX": "off"}),
     ((), "", {"CRU_SANDBOX": "bubblewrap"})],
    ids=["flag", "setting", "variable", "confined already"],
)  # fmt: skip
def test_it_is_off_where_somebody_says_so(
    surroundings: Surroundings, words: tuple[str, ...], config: str, env: dict[str, str]
) -> None:
    result, told, model = play(surroundings, *words, config=config, **env)
    assert result.endswith("\ny") and (surroundings.out / "new").read_text() == "x\n"
    assert told == "" and not is_described(model)
    assert not (surroundings.here.cru / "cache" / "sandbox.json").exists()


@needs_sandbox
def test_the_variable_is_a_mode_or_an_error(surroundings: Surroundings) -> None:
    result, _, _ = play(surroundings, config="[sandbox]\nmode = 'off'\n", CRU_SANDBOX="on")
    assert result.startswith("bubblewrap-\n")
    done = cru("go", home=surroundings.here, env={"CRU_SANDBOX": "onn"})
    assert done.code == 1 and "environment CRU_SANDBOX" in done.err and "Traceback" not in done.err, done.err


@needs_sandbox
def test_where_nothing_confines_a_person_is_told_once_a_project_and_the_model_once_a_session(
    surroundings: Surroundings,
) -> None:
    env, switch = fake_bubblewrap(surroundings)
    switch.touch()
    here = surroundings.here
    first, other = here.project, here.path / "other"
    other.mkdir()
    for project, times in ((first, 1), (first, 0), (other, 1), (first, 0), (other, 0)):
        here.project = project
        result, told, model = play(surroundings, **env)
        lines = result.splitlines()
        assert lines[-2] == "y" and lines[-1].startswith(f"[{MISSING}") and (surroundings.out / "new").exists()
        assert told.count(MISSING) == times and told.count("No permissions") == times and not is_described(model)


def test_the_model_is_told_once_a_session(surroundings: Surroundings) -> None:
    env, switch = fake_bubblewrap(surroundings)
    switch.touch()
    calls = [Reply(calls=[Call("bash", {"command": f"echo {word}"})]) for word in ("one", "two")]
    with server([*calls, Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        cru("-t", "-C", "c", "go", home=surroundings.here, env=env)
    assert [MISSING in result for result in read_results(surroundings.here, "c")] == [True, False]


STATES: dict[str, tuple[bool, tuple[str, ...], str]] = {
    "something confines": (False, (), "bubblewrap"),
    "nothing does": (True, (), "none"),
    "it is not wanted": (False, ("--no-sandbox",), "off"),
}


@needs_sandbox
@pytest.mark.parametrize("name", STATES)
def test_the_first_line_for_programs_has_the_state(surroundings: Surroundings, name: str) -> None:
    is_broken, words, state = STATES[name]
    env, switch = fake_bubblewrap(surroundings)
    if is_broken:
        switch.touch()
    with server([Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        done = cru("--json", *words, "go", home=surroundings.here, env=env)
    first = json.loads(done.out.splitlines()[0])
    assert (first["type"], first["payload"]["sandbox"]) == ("session:started", state)


@pytest.mark.slow
@needs_sandbox
def test_what_is_remembered_is_tried_again_before_a_command_is_confined(surroundings: Surroundings) -> None:
    env, switch = fake_bubblewrap(surroundings)
    assert play(surroundings, **env)[0].startswith("bubblewrap-\n")
    (surroundings.here.project / "made").unlink()
    switch.touch()  # the program looks as it did
    for _ in range(2):
        result, told, model = play(surroundings, **env)
        assert "has not run" in result and "has worked here and does not now" in result and "No permissions" in result
        assert not (surroundings.out / "new").exists() and not (surroundings.here.project / "made").exists()
    switch.unlink()
    result, told, model = play(surroundings, **env)
    assert result.startswith("bubblewrap-\n") and MISSING not in told and is_described(model)


@needs_sandbox
def test_what_worked_with_another_program_does_not_count(surroundings: Surroundings) -> None:
    env, switch = fake_bubblewrap(surroundings)
    assert play(surroundings, **env)[0].startswith("bubblewrap-\n")
    switch.touch()
    os.utime(surroundings.out.parent / "bin" / "bwrap", (1, 1))
    _, told, model = play(surroundings, **env)
    assert (surroundings.out / "new").exists() and told.count(MISSING) == 1 and not is_described(model)


@pytest.mark.sample(3)
@needs_sandbox
@pytest.mark.parametrize("content", ["", "{", "[]", '{"detection": 7}', "\xff", "[" * 5000])
def test_a_record_that_cannot_be_understood_is_made_anew(surroundings: Surroundings, content: str) -> None:
    file = surroundings.here.cru / "cache" / "sandbox.json"
    file.parent.mkdir()
    file.write_bytes(content.encode("latin-1"))
    result, told, _ = play(surroundings)
    assert result.startswith("bubblewrap-\n") and told.count(TOLD) == 1
    assert json.loads(file.read_text())["detection"]["backend"] == "bubblewrap"


@needs_sandbox
def test_a_link_in_the_place_of_the_record_makes_nothing_elsewhere(surroundings: Surroundings) -> None:
    file = surroundings.here.cru / "cache" / "sandbox.json"
    file.parent.mkdir()
    file.symlink_to(surroundings.out / "elsewhere")
    assert play(surroundings)[0].startswith("bubblewrap-\n")
    assert not (surroundings.out / "elsewhere").exists()


@pytest.mark.sample(1)
@needs_sandbox
@pytest.mark.parametrize("value", ["", "relative", None])
def test_without_a_home_in_the_environment_that_of_the_user_is_hidden(
    surroundings: Surroundings, value: str | None
) -> None:
    """It is looked at whether something can be seen, and at nothing in it."""
    login = pwd.getpwuid(os.getuid()).pw_dir
    command = f'for f in {login}/.[a-z]*; do [ -d $f ] && [ -n "$(ls -A $f 2>/dev/null)" ] && echo $f; done; echo end'
    with server([Reply(calls=[Call("bash", {"command": command})]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        env = {**surroundings.here.env, "HOME": value or ""}
        if value is None:
            del env["HOME"]
        done = subprocess.run(
            [program(), "--home", str(surroundings.here.cru), "-t", "-C", "c", "go"],
            env=env, cwd=surroundings.here.project, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = read_results(surroundings.here, "c")
    hidden = {os.path.join(login, name.rstrip("/")) for name in SECRET_AT_HOME}
    assert result.endswith("end") and not hidden & set(result.splitlines())


@needs_sandbox
def test_variables_of_a_project_say_nothing_about_the_sandbox(surroundings: Surroundings) -> None:
    settings = {"env": {"CRU_SANDBOX": "bubblewrap", "CRU_HOME": "/nowhere", "OWN": "1"}}
    (surroundings.here.project / ".claude" / "settings.json").write_text(json.dumps(settings))
    trust_project(surroundings.here)
    call = Call("bash", {"command": "echo $OWN $CRU_HOME $CRU_SANDBOX"})
    with server([Reply(calls=[call]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        cru("-t", "--no-sandbox", "-C", "c", "go", home=surroundings.here)
    assert read_results(surroundings.here, "c") == [f"1 {surroundings.here.cru}"]


@needs_sandbox
def test_a_run_that_keeps_nothing_keeps_no_record(surroundings: Surroundings) -> None:
    command = Call("bash", {"command": "echo $CRU_SANDBOX"})
    with server([Reply(calls=[command]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        done = cru("-t", "--no-session", "go", home=surroundings.here)
    assert "bubblewrap" in str(model.requests[1].body) and TOLD in done.err
    assert not (surroundings.here.cru / "cache" / "sandbox.json").exists()


@needs_sandbox
def test_a_start_loads_nothing_of_what_confines(surroundings: Surroundings, home: HomeDir) -> None:
    """Once it was tried. Each request says what commands are confined to."""
    home.sandbox = ""
    with server([Reply("one"), Reply("two")]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).code == 0
        modules = loaded(home, "hi")
        assert is_described(model)
    assert "cru.core.compose.sandbox" in modules
    assert not modules & {*LOADED_AT_USE, *HEAVY}

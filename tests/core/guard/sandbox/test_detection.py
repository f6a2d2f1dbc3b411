"""What is found to confine here: with bubblewraps that know less, and what is remembered of a look."""

from __future__ import annotations

import asyncio
import os
import shlex
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.project_code import read_results
from tests.core.guard.sandbox.test_default import fake_bubblewrap as break_bubblewrap
from tests.kit import Call, HomeDir, Reply, cru, server
from tests.kit.sandbox import needs_sandbox

from cru.core.guard.sandbox.backends import BUBBLEWRAP, Detection, DetectionMemory, backend_path, find_backend_program
from cru.core.guard.sandbox.detect import detect

OPTION = "--disable-userns"
COMPLAINTS = {
    "it does not know the option": (f"bwrap: Unknown option {OPTION}", True),
    "it is setuid": (f"bwrap: {OPTION} is not compatible with a setuid bwrap", True),
    "it cannot write the limit": ("bwrap: cannot open /proc/sys/user/max_user_namespaces: Read-only file system", True),
    "it has no permission at all": ("bwrap: No permissions to create new namespace", False),
    "there are too many namespaces": ("bwrap: Creating new namespace failed: No space left on device", False),
}
"""What a bubblewrap says where it is to keep commands from making namespaces, and whether it is asked again without."""


def old_bubblewrap(folder: Path, complaint: str) -> str:
    """Return a PATH with a bubblewrap that complains of the option and works without."""
    real = find_backend_program(backend_path(os.environ))
    fake = folder / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *{OPTION}*) echo {shlex.quote(complaint)} >&2; exit 1;; esac\nexec "{real}" "$@"\n'
    )
    fake.chmod(0o755)
    return f"{fake.parent}:{os.environ['PATH']}"


@needs_sandbox
@pytest.mark.sample(2)
@pytest.mark.parametrize("case", COMPLAINTS)
def test_a_bubblewrap_that_cannot_prevent_namespaces_confines_all_the_rest(
    surroundings: Surroundings, case: str
) -> None:
    complaint, is_enough = COMPLAINTS[case]
    path = old_bubblewrap(surroundings.out.parent, complaint)
    detection = asyncio.run(detect({"PATH": path}))
    assert (detection.backend == BUBBLEWRAP, detection.has_user_namespaces) == (is_enough, is_enough)
    if not is_enough:
        assert complaint in detection.why
        return
    call = Call("bash", {"command": surroundings.fill("echo $CRU_SANDBOX; cat {home}/.ssh/id_rsa; echo x > {out}/new")})
    with server([Reply(calls=[call]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=surroundings.here, env={"PATH": path})
    assert done.code == 0, done.err
    (result,) = read_results(surroundings.here, "c")
    assert result.startswith("bubblewrap\n") and "TOP-SECRET" not in result and "Read-only file system" in result


# the folders of the PATH in order: a bwrap that fails, the real one, or none; whether the advice is about the failing one alone
BROKEN: dict[str, tuple[tuple[str, ...], bool]] = {
    "a working one behind it": (("broken", "real"), True),
    "with a folder between": (("broken", "empty", "real"), True),
    "another that fails": (("broken", "broken2"), False),
    "no other": (("broken", "empty"), False),
}


@needs_sandbox
@pytest.mark.parametrize("case", BROKEN)
def test_a_bwrap_that_fails_before_one_that_works_is_named(tmp_path: Path, case: str) -> None:
    folders, is_alone = BROKEN[case]
    real = find_backend_program(backend_path(os.environ))
    assert real
    for name in ("broken", "broken2", "empty", "real"):
        (tmp_path / name).mkdir()
    (tmp_path / "real" / "bwrap").write_text(f'#!/bin/sh\nexec "{real}" "$@"\n')
    for name in ("broken", "broken2"):
        (tmp_path / name / "bwrap").write_text("#!/bin/sh\necho bwrap: No permissions >&2\nexit 1\n")
    for program in tmp_path.glob("*/bwrap"):
        program.chmod(0o755)
    detection = asyncio.run(detect({"PATH": os.pathsep.join(str(tmp_path / name) for name in folders)}))
    assert not detection.backend and f"{tmp_path}/broken/bwrap does not work here" in detection.why
    advice = f"{tmp_path}/real/bwrap works: remove {tmp_path}/broken/bwrap, or take its folder off your PATH"
    assert (detection.hint == advice) == is_alone and ("works: remove" in detection.hint) == is_alone


@needs_sandbox
def test_a_command_makes_no_user_namespace(surroundings: Surroundings) -> None:
    assert not asyncio.run(detect({"PATH": backend_path(os.environ)})).has_user_namespaces
    call = Call(
        "bash", {"command": "unshare -Ur id -u; unshare -Urm true && echo made; cat /proc/sys/user/max_user_namespaces"}
    )
    with server([Reply(calls=[call]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        cru("-t", "-C", "c", "go", home=surroundings.here)
    (result,) = read_results(surroundings.here, "c")
    assert "made" not in result and result.count("unshare failed") == 2


WORKED, FAILED = Detection(BUBBLEWRAP, "bwrap"), Detection(why="no", hint="do")
LOOKS: dict[str, tuple[list[Detection], Detection]] = {
    "it worked": ([WORKED], WORKED),
    "it did not": ([FAILED], FAILED),
    "it did not at first": ([FAILED, WORKED], WORKED),
    "it worked once, so a failure is no news": ([WORKED, FAILED], WORKED),
}


@pytest.mark.parametrize("has_program", [True, False])
@pytest.mark.parametrize("case", LOOKS)
def test_what_came_of_a_look_is_remembered(home: HomeDir, tmp_path: Path, case: str, has_program: bool) -> None:
    looks, remembered = LOOKS[case]
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    if has_program:
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    env = {"PATH": str(program.parent)}
    for detection in looks:
        DetectionMemory(home.cru, env, is_kept=True).keep(detection)
    memory = DetectionMemory(home.cru, env, is_kept=True)
    assert memory.recall() == remembered and memory.has_worked() == (remembered == WORKED)
    program.unlink(missing_ok=True)
    program.write_text("#!/bin/sh\n# another one\n")
    program.chmod(0o755)
    assert DetectionMemory(home.cru, env, is_kept=True).recall() is None


@needs_sandbox
def test_what_confines_again_confines_the_next_command(surroundings: Surroundings) -> None:
    """A memory that nothing confines decides what the model is told at the start, and never what is done."""
    here = surroundings.here
    env, switch = break_bubblewrap(surroundings)
    switch.touch()
    call = Reply(calls=[Call("bash", {"command": "echo $CRU_SANDBOX-"})])
    with server([call, Reply("done"), call, Reply("done"), call, Reply("done")]) as model:
        here.configure(url=model.url)
        for _ in range(3):
            assert cru("-t", "-C", "c", "go", home=here, env=env).code == 0
            switch.unlink(missing_ok=True)
    results = read_results(here, "c")
    assert results[0].startswith("-\n[commands run without a sandbox: ") and results[1:] == ["bubblewrap-"] * 2
    assert ["outside_sandbox" in str(request.body["tools"]) for request in model.requests] == [False] * 4 + [True] * 2


@needs_sandbox
def test_a_failure_that_is_remembered_lets_no_command_out(surroundings: Surroundings) -> None:
    """A call that asks for a run outside needs a rule of that name or a person, whether or not something confined at the last look."""
    here = surroundings.here
    env, switch = break_bubblewrap(surroundings)
    switch.touch()
    outside = Call("bash", {"command": surroundings.fill("echo x > {out}/new"), "outside_sandbox": True})
    with server([Reply("hi"), Reply(calls=[outside]), Reply("done")]) as model:
        here.configure("[permissions]\nallow = ['bash:*']\n", url=model.url)
        assert cru("-C", "a", "go", home=here, env=env).code == 0
        switch.unlink()
        assert cru("-C", "c", "go", home=here, env=env).code == 0
    (result,) = read_results(here, "c")
    assert "outside_sandbox" in result and not (surroundings.out / "new").exists()

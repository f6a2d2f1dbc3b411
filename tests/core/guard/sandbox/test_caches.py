"""Caches of package managers: written inside as if nothing were, the same outside as before; through the real command."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.escapes import SECRET
from tests.core.guard.sandbox.test_escapes import run
from tests.kit import Call, Reply, cru, server
from tests.kit.sandbox import needs_sandbox

POISONS = [
    "echo evil > ~/.cache/pip/wheel",
    "rm -f ~/.cache/pip/wheel; ln -s {out}/kept ~/.cache/pip/wheel; echo evil > ~/.cache/pip/wheel",
    "ln ~/.cache/pip/wheel ~/.npm/hard; echo evil >> ~/.npm/hard",
    "sed -i s/good/evil/ ~/.cache/pip/wheel",
    "chmod 777 ~/.cache ~/.npm/index; touch ~/.npm/index",
    "rm -rf ~/.npm; mkdir -p ~/.npm; echo evil > ~/.npm/index",
    "mv ~/.cache ~/.old; mv ~/.cache/pip ~/.cache/old",
    "umount ~/.cache; unshare -Urm sh -c 'umount ~/.cache; echo evil > ~/.cache/pip/wheel'",
    "setfattr -n user.overlay.redirect -v /pip ~/.cache/pip; echo evil > ~/.cache/pip/new",
    "mknod ~/.cache/whiteout c 0 0; echo evil > ~/.cache/whiteout",
    "mkdir -p ~/.cargo/bin; echo evil > ~/.cargo/bin/cargo",
    "cat ~/.cache/huggingface/token ~/.cargo/credentials.toml",
    "mv ~/.cache/huggingface ~/.cache/hug; cat ~/.cache/hug/token",
]


def fill_caches(around: Surroundings, *names: str) -> None:
    files = {
        ".cache/pip/wheel": "good",
        ".cache/huggingface/token": SECRET,
        ".npm/index": "good",
        ".cargo/credentials.toml": SECRET,
    }
    for name, text in files.items():
        if not names or name.startswith(names):
            path = around.here.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


@pytest.mark.slow
@needs_sandbox
def test_nothing_that_is_done_to_a_cache_is_there_outside(surroundings: Surroundings) -> None:
    fill_caches(surroundings)
    results = run(surroundings, POISONS)
    assert [command for command, result in zip(POISONS, results, strict=True) if SECRET in result] == []


@needs_sandbox
def test_a_cache_keeps_what_is_written_for_the_session(surroundings: Surroundings) -> None:
    fill_caches(surroundings)
    work = [
        "cat ~/.cache/pip/wheel; mkdir ~/.cache/uv; echo new > ~/.cache/uv/file; echo more >> ~/.npm/index; echo $XDG_CACHE_HOME-",
        "cat ~/.cache/uv/file ~/.npm/index",
        "echo x > $GRADLE_USER_HOME/file || { mkdir -p $GRADLE_USER_HOME && echo y > $GRADLE_USER_HOME/file; }",
        "cat $GRADLE_USER_HOME/file; echo x > ~/.profile",
    ]
    results = run(surroundings, work)
    assert results[0] == "good-" and results[1] == "new\ngoodmore"
    assert results[3].startswith("y\n") and "Read-only" in results[3]
    assert list(surroundings.temporary.iterdir()) == []


@needs_sandbox
def test_two_commands_at_the_same_time_have_a_layer_each(surroundings: Surroundings) -> None:
    fill_caches(surroundings)
    held = (
        "echo one > ~/.npm/one; touch held; until [ -e go ]; do sleep 0.02; done; cat ~/.npm/two; cat ~/.npm/one > seen"
    )
    calls = [
        Call("bash", {"command": held, "background": True}),
        Call(
            "bash",
            {
                "command": "until [ -e held ]; do sleep 0.02; done; echo two > ~/.npm/two; cat ~/.npm/one ~/.npm/two; touch go"
            },
        ),
        Call("bash", {"command": "until [ -e seen ]; do sleep 0.02; done; cat seen"}),
    ]
    with server([*(Reply(calls=[call]) for call in calls), Reply("waits"), Reply("done"), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=surroundings.here)
    assert done.code == 0, done.err
    results = [str(e["content"]) for e in surroundings.here.log("c") if e["entry_type"] == "tool_result"]
    assert "two" in results[1] and "one" not in results[1].splitlines()
    assert results[2].startswith("one")


def old_bubblewrap(around: Surroundings) -> dict[str, str]:
    """A PATH with a bwrap that knows nothing of layers."""
    from cru.core.guard.sandbox.backends import backend_path, find_backend_program

    real = find_backend_program(backend_path(around.here.env))
    fake = around.out.parent / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\ncase "$*" in *--overlay*) echo "Unknown option --overlay" >&2; exit 1;; esac\nexec "{real}" "$@"\n'
    )
    fake.chmod(0o755)
    return {"PATH": f"{fake.parent}:{around.here.env['PATH']}"}


@needs_sandbox
def test_without_layers_programs_get_folders_in_the_tmp_of_the_session(surroundings: Surroundings) -> None:
    fill_caches(surroundings)
    env = old_bubblewrap(surroundings)
    command = "for d in $XDG_CACHE_HOME $npm_config_cache $CARGO_HOME; do mkdir -p $d; echo x > $d/f && echo $d; done; cat ~/.cache/pip/*"
    with server([Reply(calls=[Call("bash", {"command": command})]), Reply("done")]) as model:
        surroundings.here.configure(url=model.url)
        done = cru("-t", "--sandbox", "-C", "c", "go", home=surroundings.here, env=env)
    assert done.code == 0, done.err
    (result,) = [str(e["content"]) for e in surroundings.here.log("c") if e["entry_type"] == "tool_result"]
    assert result.split() == ["/tmp/.caches/cache", "/tmp/.caches/npm", "/tmp/.caches/cargo", "good"]
    assert not Path("/tmp/.caches").exists()


@needs_sandbox
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "CARGO_HOME"])
def test_a_variable_that_names_too_much_makes_no_cache_of_it(surroundings: Surroundings, variable: str) -> None:
    with server(
        [Reply(calls=[Call("bash", {"command": f"echo x >> ~/.profile; echo ${variable}"})]), Reply("done")]
    ) as model:
        surroundings.here.configure(url=model.url)
        env = {variable: str(surroundings.here.path)}
        done = cru("-t", "--sandbox", "-C", "c", "go", home=surroundings.here, env=env)
    assert done.code == 0, done.err
    (result,) = [str(e["content"]) for e in surroundings.here.log("c") if e["entry_type"] == "tool_result"]
    assert "Read-only file system" in result and "/tmp/.caches/" in result
    assert (surroundings.here.path / ".profile").read_text() == "old"

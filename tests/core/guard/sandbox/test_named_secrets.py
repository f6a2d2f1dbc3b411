"""Secrets at places that variables name: hidden from commands, and asked about before cru's own tools read them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.escapes import SECRET
from tests.kit import Call, Reply, cru, server
from tests.kit.sandbox import needs_sandbox
from tests.kit.scripts import python_word

from cru.core.guard.rules.paths import named_secrets

VARIABLES = {
    "KUBECONFIG": "{out}/none:{out}/kube",
    "GH_CONFIG_DIR": "{out}/gh",
    "AWS_SHARED_CREDENTIALS_FILE": "{out}/aws",
    "DOCKER_CONFIG": "{out}/docker",
    "GNUPGHOME": "{out}/gnupg",
    "NETRC": "{out}/netrc",
    "CARGO_HOME": "{out}/cargo",
    "XDG_CONFIG_HOME": "{out}/config",
}
FILES = (
    "config/gh/hosts.yml",
    "kube",
    "gh/hosts.yml",
    "aws",
    "docker/config.json",
    "gnupg/key",
    "netrc",
    "cargo/credentials.toml",
)


@needs_sandbox
def test_what_variables_name_is_hidden_and_asked_about(surroundings: Surroundings) -> None:
    here, out = surroundings.here, surroundings.out
    for name in FILES:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(SECRET)
    (out / "cargo" / "config.toml").write_text("plain")
    env = {name: value.format(out=out) for name, value in VARIABLES.items()}
    cat = Call("bash", {"command": f"cat {' '.join(str(out / name) for name in FILES)} {out}/cargo/config.toml"})
    reads = [Call("read", {"file_path": str(out / name)}) for name in FILES]
    with server([Reply(calls=[cat]), Reply("done"), Reply(calls=reads), Reply("done")]) as model:
        here.configure(url=model.url)
        for mode in ("trust", "auto"):
            done = cru("--sandbox", "--mode", mode, "-C", "c", "go", home=here, env=env)
            assert done.code == 0, done.err
    results = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert len(results) == 1 + len(FILES) and not any(SECRET in result for result in results), results
    assert "plain" in results[0]


@pytest.mark.parametrize(
    "value", ["/", "/home", "/home/me", "/home/me/project", "/home/me/project/kube", "relative", ""]
)
def test_a_variable_that_names_too_much_or_the_projects_own_hides_nothing(value: str) -> None:
    assert named_secrets({"KUBECONFIG": value}, "/home/me/project", "/home/me") == ()
    assert named_secrets({"KUBECONFIG": f"/etc/kube:{value}"}, "/home/me/project", "/home/me") == (
        str(Path("/etc/kube")),
    )


CONNECT = """
import socket, sys
for path in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("reached", path)
    except OSError as error:
        print("refused", path)
"""


@needs_sandbox
def test_agents_that_listen_in_the_home_are_not_reached(surroundings: Surroundings) -> None:
    here = surroundings.here
    (here.path / ".1password").mkdir()
    paths = [str(here.path / name) for name in (".1password/agent.sock", "agent.sock", "docker.sock", "bus")]
    listening = [socket.socket(socket.AF_UNIX) for _ in paths]
    for path, agent in zip(paths, listening, strict=True):
        agent.bind(path)
        agent.listen()
    env = {
        "SSH_AUTH_SOCK": paths[1],
        "DOCKER_HOST": f"unix://{paths[2]}",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={paths[3]},guid=1",
    }
    (here.project / "connect.py").write_text(CONNECT)
    call = Call("bash", {"command": f"{python_word()} -IS connect.py {' '.join(paths)}"})
    try:
        with server([Reply(calls=[call]), Reply("done")] * 2) as model:
            here.configure(url=model.url)
            for flag in ("--sandbox", "--no-sandbox"):
                done = cru(flag, "-t", "-C", "c", "go", home=here, env=env)
                assert done.code == 0, done.err
    finally:
        for agent in listening:
            agent.close()
    inside, outside = [str(entry["content"]) for entry in here.log("c") if entry["entry_type"] == "tool_result"]
    assert (inside.count("refused"), outside.count("reached")) == (4, 4), (inside, outside)

"""Secrets at places that variables name: hidden from commands, and asked about before cru's own tools read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import Call, Reply, cru, server
from tests.sandbox.conftest import Surroundings
from tests.sandbox.escapes import SECRET
from tests.sandbox.test_escapes import needs_sandbox

from cru.permissions.paths import named_secrets

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

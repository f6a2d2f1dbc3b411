"""What is said of the sandbox: to the model, and to the person, with the step that helps."""

from __future__ import annotations

import pytest
from tests.core.guard.sandbox.conftest import Surroundings
from tests.core.guard.sandbox.project_code import KINDS, read_results
from tests.kit import Call, Reply, cru, server
from tests.kit.sandbox import needs_sandbox
from tests.kit.scripts import cru_word

from cru.core.guard.sandbox.backends import sandbox_table
from cru.core.guard.sandbox.refusals import looks_refused


def play(around: Surroundings, calls: list[Call], *flags: str, config: str = "", **env: str) -> tuple[list[str], str]:
    with server([*(Reply(calls=[call]) for call in calls), *[Reply("done")] * 3]) as model:
        around.here.configure(config, url=model.url)
        done = cru(*(flags or ("-t",)), "-C", "c", "go", home=around.here, env=env)
    assert done.code == 0, done.err
    return read_results(around.here, "c"), done.err


@needs_sandbox
@pytest.mark.parametrize(
    ("command", "rule"),
    [("git config a.b c", "outside_sandbox:git config a.b c"), ("ls *", "outside_sandbox:…"), ("x" * 200, "outside_sandbox:…")],
)  # fmt: skip
def test_where_nobody_can_be_asked_the_rule_is_named(surroundings: Surroundings, command: str, rule: str) -> None:
    [result], _ = play(surroundings, [Call("bash", {"command": command, "outside_sandbox": True})])
    assert f'nobody can be asked here; allow it with `[permissions] allow = ["{rule}"]` in ' in result
    assert result.endswith("or run cru with `--no-sandbox`")


@needs_sandbox
def test_the_rule_that_is_named_permits_it(surroundings: Surroundings) -> None:
    config = '[permissions]\nallow = ["outside_sandbox:git config a.b c"]\n'
    call = Call("bash", {"command": "git config a.b c", "outside_sandbox": True})
    assert play(surroundings, [call], config=config)[0] == ["(no output)"]


@pytest.mark.slow
@needs_sandbox
def test_of_a_run_that_waits_for_another_the_next_step_is_to_wait(surroundings: Surroundings) -> None:
    calls = [
        Call("bash", {"command": "sleep 20", "background": True}),
        Call("bash", {"command": "make", "outside_sandbox": True}),
    ]
    results, _ = play(surroundings, calls, config='[permissions]\nallow = ["outside_sandbox:make"]\n')
    assert (
        "`sleep 20` runs there; nobody can be asked here; it can be permitted by a rule once that has ended"
        in results[1]
    )


@pytest.mark.slow
@needs_sandbox
def test_a_cru_that_is_confined_says_that_its_home_is_hidden(surroundings: Surroundings) -> None:
    commands = [
        f"{cru_word()} {words}" for words in ("plugin list", "plugin test rule", "doctor --offline", "-L", "hi")
    ]
    results, _ = play(surroundings, [Call("bash", {"command": command}) for command in commands])
    for result in results:
        assert "this cru runs in a sandbox, and its home" in result and "`outside_sandbox`: true" in result, result
        assert "there is no plugin" not in result and "Traceback" not in result
    assert "cru 0" in play(surroundings, [Call("bash", {"command": f"{cru_word()} --version"})])[0][0]


@needs_sandbox
def test_of_what_a_project_brings_the_limits_are_told_at_length_once(surroundings: Surroundings) -> None:
    KINDS["plugin"].install(surroundings.here)
    calls = [KINDS["plugin"].call(surroundings.fill("echo x > {out}/new; exit 1")) for _ in range(3)]
    results, told = play(surroundings, calls)
    text = "\n".join([*results, told])
    assert (
        text.count("as what a project brings does") == 1 and text.count("it ran in the sandbox") == 2
    )  # and that this came once more
    assert "goes into your own files" in text and "`project` in [sandbox]" in text


@needs_sandbox
def test_output_of_the_background_can_be_read_by_commands(surroundings: Surroundings) -> None:
    calls = [
        Call("bash", {"command": "echo first words", "background": True}),
        Call(
            "bash",
            {
                "command": "until cat $CRU_HOME/contexts/c/tasks/*/output.log 2>/dev/null | grep words; do sleep 0.02; done"
            },
        ),
        Call("bash", {"command": "echo x >> $CRU_HOME/contexts/c/tasks/*/output.log; ls $CRU_HOME/contexts/c"}),
    ]
    results, _ = play(surroundings, calls, "-t")
    assert results[1] == "first words" and "Read-only file system" in results[2] and "context.jsonl" not in results[2]


@needs_sandbox
def test_what_is_put_aside_is_made_by_the_tool_that_asks(surroundings: Surroundings) -> None:
    [result], _ = play(surroundings, [Call("bash", {"command": "mkdir .vscode && echo '{}' > .vscode/tasks.json"})])
    assert ".vscode.from-sandbox" in result and "for files of that kind the tool `write` asks a person" in result


@pytest.mark.parametrize(
    "text",
    [
        "Host key verification failed.\r\nfatal: Could not read from remote repository.\n",
        "error: gpg failed to sign the data\nfatal: failed to write commit object",
        "Unable to locate credentials. You can configure credentials by running \"aws configure\".",
        "npm error code ENEEDAUTH",
        "fatal: could not read Username for 'https://github.com': No such device or address",
        "To get started with GitHub CLI, please run:  gh auth login",
        "fatal: Branch is renamed, but update of config-file failed",
    ],
)  # fmt: skip
def test_failures_for_want_of_what_is_hidden_are_known(text: str) -> None:
    assert looks_refused("x", text, 128, has_network=True) and not looks_refused("x", text, 0, has_network=True)


def test_a_named_file_in_a_pipe_that_succeeds_is_known() -> None:
    text = "ERROR: Could not install: [Errno 30] Read-only file system: '/usr/lib/python3/site-packages/urllib3'\n"
    assert looks_refused("pip install x 2>&1 | tail -2", text, 0, has_network=True)
    assert not looks_refused("cat notes", "Read-only file system: is what the page is about\n", 0, has_network=True)


@pytest.mark.parametrize(
    ("value", "mode"), [("0", "off"), ("No", "off"), ("false", "off"), ("1", "on"), ("yes", "on"), ("auto", "auto")]
)
def test_words_for_modes_are_understood_in_the_environment(value: str, mode: str) -> None:
    assert sandbox_table({"CRU_SANDBOX": value}) == {"sandbox": {"mode": mode}}

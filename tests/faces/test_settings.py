"""Settings of every layer reach the request, the later layer wins, and keys go only where they belong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Reply, Server, cru, server, trust_project


def project_file(home: HomeDir, text: str) -> Path:
    path = home.project / ".cru" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def sent(model: Server) -> dict[str, object]:
    body: dict[str, object] = model.requests[-1].body
    return body


def test_model_key_and_address_of_the_users_file(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure('model = "big"\napi_key = "my-key"\n', url=model.url)
        assert cru("hi", home=home).code == 0
    assert sent(model)["model"] == "big" and model.requests[0].headers["authorization"] == "Bearer my-key"


def test_parameters_of_the_api_table(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(
            '[api]\ntemperature = 0.5\nmax_tokens = 77\n[models."mock".api]\nmax_tokens = 78\n', url=model.url
        )
        assert cru("hi", home=home).code == 0
    assert (sent(model)["temperature"], sent(model)["max_tokens"]) == (0.5, 78)


def test_an_alias_names_a_model(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure('[models."fast"]\nmodel = "vendor/fast-1"\n', url=model.url)
        assert cru("--model", "fast", "hi", home=home).code == 0
    assert sent(model)["model"] == "vendor/fast-1"


LAYERS = ("of-user", "of-project", "of-context", "of-flag")


@pytest.mark.parametrize("last", LAYERS)
def test_each_later_layer_wins(home: HomeDir, last: str) -> None:
    given = LAYERS[: LAYERS.index(last) + 1]
    with server([Reply("ok")]) as model:
        home.configure('model = "of-user"\n', url=model.url)
        if "of-project" in given:
            project_file(home, 'model = "of-project"\n')
            trust_project(home)
        if "of-context" in given:
            home.context("work").mkdir(parents=True)
            (home.context("work") / "local.toml").write_text('model = "of-context"\n')
        words = ("--model", "of-flag") if "of-flag" in given else ()
        assert cru("-C", "work", *words, "hi", home=home).code == 0
    assert sent(model)["model"] == last


def test_the_settings_of_a_context_hold_in_that_context_only(home: HomeDir) -> None:
    with server([Reply("ok")] * 2) as model:
        home.configure(url=model.url)
        (home.context("work")).mkdir(parents=True)
        (home.context("work") / "local.toml").write_text('model = "theirs"\n')
        cru("-C", "work", "hi", home=home)
        cru("hi", home=home)
    assert [r.body["model"] for r in model.requests] == ["theirs", "mock"]


def test_an_untrusted_project_cannot_redirect_the_model_or_allow_anything(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "touch made"})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        text = 'base_url = "http://127.0.0.1:1/v1"\nmode = "trust"\n[permissions]\nallow = ["bash"]\n'
        path = project_file(home, text)
        run = cru("hi", home=home)
    assert run.code == 0 and run.out == "ok\n" and not (home.project / "made").exists()
    for key in ("base_url", "mode", "permissions.allow"):
        assert f"`{key}` is ignored" in run.err
    assert str(path) in run.err and "cru trust" in run.err


def test_an_untrusted_project_may_forbid(home: HomeDir) -> None:
    with server([Reply(calls=[Call("ls", {})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        project_file(home, '[permissions]\ndeny = ["ls"]\n')
        run = cru("hi", home=home)
    assert run.code == 0 and "the rule `ls`" in str(model.requests[1].body["messages"][-1])


def test_a_trusted_project_counts_until_its_file_changes(home: HomeDir) -> None:
    touch = [Reply(calls=[Call("bash", {"command": "touch made"})]), Reply("ok")]
    with server(touch * 3) as model:
        home.configure(url=model.url)
        path = project_file(home, '[permissions]\nallow = ["bash"]\n')
        shown = trust_project(home)
        assert 'allow = ["bash"]' in shown.out
        made = home.project / "made"
        run = cru("hi", home=home)
        assert run.err == "" and made.exists()
        made.unlink()
        path.write_text(path.read_text() + "# changed\n")
        assert "is ignored" in cru("hi", home=home).err and not made.exists()


def test_trust_can_be_taken_back(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        project_file(home, 'fuel = 5\nmode = "auto"\n')
        trust_project(home)
        assert "forgotten" in cru("trust", "--revoke", home=home).out
        assert "`mode` is ignored" in cru("hi", home=home).err
    assert "was not trusted" in cru("trust", "--revoke", home=home).out


def test_what_is_trusted_is_shown_without_escape_sequences(home: HomeDir) -> None:
    from tests.kit import pty

    project_file(home, '# \x9b2K \u202e\nmodel = "x"\n')
    with pty("trust", home=home) as terminal:
        terminal.expect("accept this? [y/N]")
        terminal.line("n")
        assert terminal.wait() == 1
    assert "\\x9b2K \\u202e" in terminal.text


def test_keys_reach_neither_tools_nor_records(home: HomeDir) -> None:
    keys = {
        "OPENROUTER_API_KEY": "sk-or-0123456789",
        "ANTHROPIC_API_KEY": "sk-ant-0123456789",
        "CRU_API_KEY": "sk-own-0123456789",
    }
    with server([Reply(calls=[Call("bash", {"command": "env; echo $PPID"})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        assert cru("-t", "hi", home=home, env=keys).code == 0
    output = model.requests[1].body["messages"][-1]["content"]
    assert "CRU_CONTEXT=default" in output and "API_KEY" not in output
    for path in home.cru.rglob("*"):
        if path.is_file() and path.name != "config.toml":
            data = path.read_bytes()
            assert not any(key.encode() in data for key in (*keys.values(), "kit-key")), path


def test_the_key_of_a_provider_is_not_sent_to_another_server(home: HomeDir) -> None:
    with server([Reply("ok")]) as model:
        home.configure(url="")
        (home.cru / "config.toml").write_text(f'model = "m"\nbase_url = "{model.url}"\n')
        assert cru("hi", home=home, env={"OPENAI_API_KEY": "sk-0123456789"}).code == 0
    assert "sk-0123456789" not in str(model.requests[0].headers)


@pytest.mark.parametrize("name", ["CRU_HOME", "--home"])
def test_another_home_is_used_alone(home: HomeDir, name: str) -> None:
    other = home.path / "elsewhere"
    words, env = (("--home", str(other)), {}) if name == "--home" else ((), {"CRU_HOME": str(other)})
    assert cru(*words, "-c", "work", home=home, env=env).code == 0
    assert (other / "contexts" / "work").is_dir() and not home.cru.exists()


def test_the_project_root_is_the_repository_above_or_as_told(home: HomeDir) -> None:
    inner = home.project / "a" / "b"
    inner.mkdir(parents=True)
    (home.project / ".git").mkdir()
    with server([Reply("ok")] * 3) as model:
        home.configure(url=model.url)
        cru("hi", home=home, cwd=inner)
        cru("--project-root", "..", "hi", home=home, cwd=inner)
        cru("hi", home=home, cwd=inner, env={"CRU_PROJECT_ROOT": str(inner)})
    roots = [r.body["messages"][0]["content"].partition("Project root: ")[2].split("\n")[0] for r in model.requests]
    assert roots == [str(home.project), str(inner.parent), str(inner)]


def test_the_rules_of_a_project_without_version_control_hold_in_its_subfolders(home: HomeDir) -> None:
    inner = home.project / "a" / "b"
    inner.mkdir(parents=True)
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_text('[permissions]\ndeny = ["bash:rm *"]\n')
    (inner / "kept.txt").write_text("kept")
    with server([Reply(calls=(Call("bash", {"command": "rm kept.txt"}),)), Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("-t", "clean up", home=home, cwd=inner)
    assert run.code == 0 and (inner / "kept.txt").exists()
    assert "bash:rm *" in model.requests[1].body["messages"][-1]["content"]

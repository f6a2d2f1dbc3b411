"""What a call of `task` may name as its model: a file is read under the rules of reading, and another server needs leave."""

from __future__ import annotations

import json

import pytest
from tests.kit import Call, HomeDir, Reply, cru, server, trust_project
from tests.kit.server import Server

SECRET = "PASSWORD=hunter2hunter2\n"


def task(model: str, agent: str = "explore") -> Call:
    return Call("task", {"agent": agent, "prompt": "x", "description": "d", "model": model})


def results(model: Server) -> list[str]:
    return [str(message["content"]) for message in model.requests[-1].body["messages"] if message["role"] == "tool"]


def play(home: HomeDir, config: str, *calls: Call, env: dict[str, str] | None = None) -> list[str]:
    with server([Reply(calls=list(calls)), Reply("ok")]) as model:
        home.configure(config, url=model.url)
        cru("go", home=home, env=env)
        return results(model)


@pytest.mark.sample(6)
@pytest.mark.parametrize("form", ["scripted:{}", "scripted/{}", " scripted:{}", "local:{}"])
@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "trust"])
def test_a_denied_file_is_no_model(home: HomeDir, form: str, mode: str) -> None:
    (home.project / ".env").write_text(SECRET)
    file = home.project / ".env"
    [told] = play(home, f'mode = "{mode}"\n[permissions]\ndeny = ["read:.env"]\n', task(form.format(file)))
    assert "hunter2" not in told and "the rule `read:.env` in [permissions] deny" in told


@pytest.mark.parametrize("name", [".ssh/creds", ".netrc", "outside.txt"])
def test_a_file_outside_of_the_project_is_asked_about_as_by_read(home: HomeDir, name: str) -> None:
    (home.path / ".ssh").mkdir()
    (home.path / name).write_text(SECRET)
    told = play(
        home,
        "",
        task(f"scripted:{home.path}/{name}"),
        task(f"scripted:~/{name}"),
        Call("read", {"file_path": f"~/{name}"}),
    )
    assert all("Not allowed by policy" in text and "hunter2" not in text for text in told) and len(told) == 3


def test_dots_behind_a_link_lead_where_the_link_does(home: HomeDir) -> None:
    (home.path / "sub").mkdir()
    (home.path / ".netrc").write_text(SECRET)
    (home.project / "link").symlink_to(home.path / "sub")
    [told] = play(home, "", task("scripted:link/../.netrc"))
    assert "hunter2" not in told and "is protected: reading it needs a question" in told


def test_no_file_of_gibibytes_is_loaded_as_a_script(home: HomeDir) -> None:
    with (home.project / "big.txt").open("wb") as file:
        file.truncate(2 << 30)
    [told] = play(home, "", task("scripted:big.txt"))
    assert "cannot read the script" in told and "it is larger than 64 MiB" in told


def test_a_script_in_the_project_may_be_named(home: HomeDir) -> None:
    (home.project / "below.txt").write_text("text: found\n")
    assert play(home, "", task("scripted:below.txt")) == ["found"]


def test_a_card_of_the_project_reads_no_file_that_may_not_be_read(home: HomeDir) -> None:
    (home.path / ".netrc").write_text(SECRET)
    folder = home.project / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "spy.md").write_text(f"---\nname: spy\ndescription: d\nmodel: scripted:{home.path}/.netrc\n---\nx\n")
    *_, told = play(home, "", Call("task", {"agent": "spy", "prompt": "x", "description": "d"}))
    assert "comes from a project that is not trusted" in told
    trust_project(home)
    *_, told = play(home, "", Call("task", {"agent": "spy", "prompt": "x", "description": "d"}))
    assert "hunter2" not in told and "names the model" in told and "is protected: reading it needs a question" in told
    own = home.path / ".claude" / "agents"
    own.mkdir(parents=True)
    (home.path / "own.txt").write_text("text: mine\n")
    (own / "own.md").write_text(f"---\nname: own\ndescription: d\nmodel: scripted:{home.path}/own.txt\n---\nx\n")
    assert play(home, "", Call("task", {"agent": "own", "prompt": "x", "description": "d"}))[-1] == "mine"


OLLAMA = task("ollama:evil")


@pytest.mark.sample(1)
@pytest.mark.parametrize(("config", "needs_leave"), [("", True), ('[models.far]\nmodel = "ollama:evil"\n', False)])
def test_another_server_needs_leave_unless_the_settings_name_it(home: HomeDir, config: str, needs_leave: bool) -> None:
    named = task("far") if config else OLLAMA
    (home.project / "model.txt").write_text(f"call: task {json.dumps(named.args)}\n---\ntext: ok\n")
    home.configure(f'model = "scripted:model.txt"\n{config}')
    cru("go", home=home)
    [told] = [entry["content"] for entry in home.log() if entry["entry_type"] == "tool_result"]
    asked = "its model `ollama:evil` is asked at http://127.0.0.1:11434/v1, where no setting of yours leads" in told
    assert asked is needs_leave and ("failed: error:" in told) is not needs_leave


def test_the_own_server_needs_no_leave_whatever_the_model(home: HomeDir) -> None:
    with server([Reply(calls=[task("another-model")]), Reply("from below"), Reply("ok")]) as model:
        home.configure(url=model.url)
        assert cru("go", home=home).out == "ok\n"
    assert model.requests[1].body["model"] == "another-model" and results(model) == ["from below"]

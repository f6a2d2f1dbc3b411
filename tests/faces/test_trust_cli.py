"""`cru trust` and the plugins of a project, through the real command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Done, HomeDir, Reply, cru, pty, server, trust_project

from cru.core.guard.trust.accepted_files import TrustStore

TOLD = "cru.on('turn:complete', function() cru.toast('{0}') end)"


def plugin(home: HomeDir, name: str, text: str = "") -> Path:
    path = home.project / ".cru" / "plugins" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or TOLD.format(f"{name} ran"))
    return path


def turn(home: HomeDir, cwd: Path | None = None) -> Done:
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home, cwd=cwd)
    assert (run.code, run.out) == (0, "ok\n") and "Traceback" not in run.err, run
    return run


def states(home: HomeDir) -> dict[str, str]:
    run = cru("plugin", "list", "--json", home=home)
    assert run.code == 0, run.err
    rows: list[dict[str, Any]] = msgspec.json.decode(run.out)
    return {row["name"]: row["state"] for row in rows if row["layer"] != "bundled"}


@pytest.mark.slow
def test_the_plugins_of_a_project_run_after_they_were_shown_and_accepted(home: HomeDir) -> None:
    plugin(home, "a.lua")
    plugin(home, "b/init.lua", TOLD.format("b ran"))
    run = turn(home)
    folder = home.project / ".cru" / "plugins"
    assert "ran" not in run.err
    assert (
        f"2 plugins of this project are not loaded: this project is not trusted (read {folder}, then `cru trust`)"
        in run.err
    )
    assert states(home) == {"a": "untrusted", "b": "untrusted"}
    shown = trust_project(home)
    assert f"{folder} is trusted as it is" in shown.out
    assert f"{len(TOLD.format('b ran')):>9}  .cru/plugins/b/init.lua\n" in shown.out
    run = turn(home)
    assert "a.lua ran" in run.err and "b ran" in run.err
    assert states(home) == {"a": "active", "b": "active"}
    assert "forgotten" in cru("trust", "--revoke", home=home).out
    assert states(home) == {"a": "untrusted", "b": "untrusted"}


def test_a_folder_that_changed_after_it_was_trusted_is_a_stranger_again(home: HomeDir) -> None:
    file = plugin(home, "a.lua")
    trust_project(home)
    file.write_text("error('never run')")
    run = turn(home)
    assert "never run" not in run.err
    assert "1 plugin of this project is not loaded: it has changed since it was trusted" in run.err
    assert states(home) == {"a": "untrusted"}


def test_what_changes_during_a_run_is_not_loaded_however_late(home: HomeDir) -> None:
    helper = home.project / ".cru" / "plugins" / "late" / "lua" / "helper.lua"
    text = f"""
      cru.on("message:received", function()
        cru.fs.write("{helper}", "return 'evil'")
        cru.toast("helper says " .. require("helper"))
      end)"""
    plugin(home, "late/init.lua", text)
    plugin(home, "late/lua/helper.lua", "return 'good'")
    trust_project(home)
    run = turn(home)
    assert helper.read_text() == "return 'evil'", run.err
    assert "helper says good" in run.err
    assert "it has changed since it was trusted" in turn(home).err


def test_a_plugin_of_the_user_wins_over_one_of_a_project(home: HomeDir) -> None:
    plugin(home, "guard.lua", TOLD.format("the project's"))
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "guard.lua").write_text(TOLD.format("mine"))
    assert "mine" in turn(home).err
    assert states(home) == {"guard": "active"}
    trust_project(home)
    run = turn(home)
    assert "mine" in run.err and "the project's" not in run.err


def test_an_untrusted_plugin_switches_off_nobody_of_its_name(home: HomeDir, tmp_path: Path) -> None:
    """Packages come after the project; a stranger must not stand in their way."""
    record = tmp_path / "site" / "guard-1.dist-info"
    record.mkdir(parents=True)
    (record / "entry_points.txt").write_text("[cru.extensions]\nguard = guard_plugin\n")
    (tmp_path / "site" / "guard_plugin.py").write_text("def setup(cru):\n    cru.toast('on guard')\n")
    plugin(home, "guard.lua", "")
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        run = cru("hello", home=home, env={"PYTHONPATH": str(tmp_path / "site")})
    assert "on guard" in run.err and "1 plugin of this project is not loaded" in run.err


def test_a_link_that_leads_out_of_the_project_is_refused_and_nothing_is_accepted(home: HomeDir, tmp_path: Path) -> None:
    (tmp_path / "outside.lua").write_text(TOLD.format("outside"))
    plugin(home, "good.lua")
    (home.project / ".cru" / "plugins" / "out.lua").symlink_to(tmp_path / "outside.lua")
    (home.project / ".cru" / "config.toml").write_text('mode = "trust"\n')
    run = cru("trust", home=home)
    assert run.code == 1 and "plugins/out.lua leads out of the project" in run.err
    assert not (home.cru / "trust.json").exists()
    assert " ran" not in turn(home).err


def test_a_link_that_comes_later_is_named(home: HomeDir, tmp_path: Path) -> None:
    plugin(home, "good.lua")
    trust_project(home)
    (home.project / ".cru" / "plugins" / "out").symlink_to(tmp_path)
    err = turn(home).err
    assert "1 plugin of this project is not loaded: " in err and "plugins/out leads out of the project" in err


def test_the_folder_of_the_user_is_never_one_of_a_project(home: HomeDir) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "mine.lua").write_text(TOLD.format("mine"))
    run = turn(home, cwd=home.path)
    assert "mine" in run.err and "trust" not in run.err
    shown = cru("trust", home=home, cwd=home.path)
    assert "plugins" not in shown.out and ".lua" not in shown.out


def test_a_python_plugin_of_a_project_leaves_nothing_in_it(home: HomeDir) -> None:
    plugin(home, "snake/__init__.py", "from . import inner\ndef setup(cru):\n    cru.toast(inner.TEXT)\n")
    plugin(home, "snake/inner.py", "TEXT = 'hiss'")
    trust_project(home)
    for _ in range(2):
        assert "hiss" in turn(home).err
    assert not (home.project / ".cru" / "plugins" / "snake" / "__pycache__").exists()


def test_a_file_name_cannot_write_to_the_terminal(home: HomeDir) -> None:
    plugin(home, "a\x1b[2J\nb.lua", "return 1")
    run = trust_project(home)
    assert "\x1b" not in run.out and "a\\x1b[2J\\nb.lua" in run.out


def test_with_nothing_to_trust_there_is_nothing_to_accept(home: HomeDir) -> None:
    run = cru("trust", home=home)
    assert run.code == 1 and "there is no" in run.out and not (home.cru / "trust.json").exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1, "files": 5}'])
def test_a_corrupt_file_of_trust_trusts_nothing_and_is_kept(home: HomeDir, content: str) -> None:
    plugin(home, "a.lua")
    trust_project(home)
    (home.cru / "trust.json").write_text(content)
    run = turn(home)
    assert "a.lua ran" not in run.err and "trust.json: not understood" in run.err
    assert (home.cru / "trust.json.corrupt-1").read_text() == content
    trust_project(home)
    assert "a.lua ran" in turn(home).err


SETTINGS = """mode = "auto"
model = "theirs"
[permissions]
allow = ["bash:make *", "write"]
deny = ["read:secret"]
[plugins.guard]
enabled = false
"""


def accepted(home: HomeDir) -> bool:
    return (home.cru / "trust.json").exists()


def test_what_a_project_lets_happen_is_marked_and_the_rest_is_not(home: HomeDir) -> None:
    plugin(home, "a.lua", "-- one\n-- two\n-- three\n-- four\n-- five\n-- six\n-- seven\n")
    (home.project / ".cru" / "config.toml").write_text(SETTINGS)
    (home.project / "crush.json").write_text('{"hooks": {"PreToolUse": [{"command": "./guard.sh"}]}}')
    out = cru("trust", "--show", home=home).out
    file = home.project / ".cru" / "config.toml"
    marked = [line for line in out.splitlines() if line.startswith("! ")]
    assert marked == [
        f'! {file}:1: mode = "auto": the model acts without asking you',
        f'! {file}:4: permissions.allow = "bash:make *": is done without asking you',
        f'! {file}:4: permissions.allow = "write": is done without asking you',
        f'! {file}:2: model = "theirs": decides who gets your prompts, and with them your key',
        f"! {file}:7: plugins.guard.enabled = false: switches a plugin on or off, one of yours too",
        "! 1 file of plugins: code that runs with your rights",
    ]
    assert SETTINGS.rstrip() in out
    assert "       55  .cru/plugins/a.lua\n           │ -- one\n" in out
    assert "│ -- five\n           │ … 2 more\n" in out and "-- six" not in out
    assert "1 hook of this project awaits trust: `cru hooks review`\n" in out and "PreToolUse: ./guard.sh" in out
    assert not accepted(home)


def test_without_a_terminal_only_what_was_shown_is_accepted(home: HomeDir) -> None:
    file = plugin(home, "a.lua")
    run = cru("trust", home=home)
    assert run.code == 2 and "nothing is accepted: there is no terminal to answer at" in run.err and not accepted(home)
    digest = run.err.rpartition("--yes ")[2].strip()
    assert ".cru/plugins/a.lua" in run.out and digest in cru("trust", "--show", home=home).out
    file.write_text("error('changed after the look')")
    run = cru("trust", "--yes", digest, home=home)
    assert run.code == 2 and f"what is there now is not what {digest} names" in run.err and not accepted(home)
    assert cru("trust", "--yes", "", home=home).code == 2
    file.write_text(TOLD.format("a.lua ran"))
    assert cru("trust", "--yes", digest, home=home).code == 0 and "a.lua ran" in turn(home).err


def test_settings_that_no_run_could_use_are_not_accepted_and_what_was_is_taken_back(home: HomeDir) -> None:
    file = home.project / ".cru" / "config.toml"
    file.parent.mkdir()
    file.write_text('[permissions]\ndney = ["bash:rm *"]\n')
    for words in (("--show",), ("--yes", "0" * 12)):
        run = cru("trust", *words, home=home)
        assert run.code == 1 and "unknown setting `permissions.dney`" in run.err and not accepted(home)
    TrustStore(home.cru / "trust.json").trust(file)
    assert cru("hello", home=home).code == 1
    run = cru("trust", "--revoke", home=home)
    assert (run.code, run.err) == (0, "") and f"{file}: forgotten" in run.out
    assert TrustStore(home.cru / "trust.json").is_known(file) is False


def test_what_is_trusted_already_is_not_asked_again_and_a_lower_limit_is_no_widening(home: HomeDir) -> None:
    file = plugin(home, "a.lua")
    (home.project / ".cru" / "config.toml").write_text("fuel = 3\nmax_continuations = 0\n")
    out = cru("trust", "--show", home=home).out
    assert "! " in out and "max_continuations = 0" in out and "fuel = 3:" not in out
    assert cru("trust", "--yes", out.rpartition("--yes ")[2].strip(), home=home).code == 0
    run = cru("trust", home=home)
    assert run.code == 0 and "all of this is trusted already" in run.out
    file.write_text("error('changed')")
    assert cru("trust", home=home).code == 2


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("", 1), ("y", 0)])
def test_on_a_terminal_it_asks(home: HomeDir, answer: str, code: int) -> None:
    plugin(home, "a.lua")
    with pty("trust", home=home) as terminal:
        terminal.expect("accept this? [y/N]")
        assert not accepted(home)
        terminal.line(answer)
        assert terminal.wait() == code
    assert accepted(home) == (code == 0)


def test_a_program_that_a_server_of_the_project_is_is_marked(home: HomeDir) -> None:
    (home.project / ".cru").mkdir()
    (home.project / ".cru" / "config.toml").write_text('[mcp.servers.w]\ncommand = "python3"\nargs = ["srv.py"]\n')
    marked = [line for line in cru("trust", "--show", home=home).out.splitlines() if line.startswith("! ")]
    assert [line.partition(": mcp.")[2].partition(": ")[0] for line in marked] == [
        'servers.w.command = "python3"',
        'servers.w.args = "srv.py"',
    ]
    assert "the files that it runs are not looked at" in marked[0]


def test_what_was_typed_before_the_question_accepts_nothing(home: HomeDir) -> None:
    """Lines that are pasted behind the command, as a page may ask for it."""
    plugin(home, "a.lua")
    with pty("trust", home=home, typed="y\ny\n") as terminal:
        terminal.expect("accept this? [y/N]")
        assert not accepted(home)
        terminal.line("")
        assert terminal.wait() == 1
    assert not accepted(home)


def test_what_is_taken_back_stays_so_for_cards_that_are_hidden_or_gone(home: HomeDir) -> None:
    files = [home.project / folder / "agents" / "poet.md" for folder in (".cru", ".claude")]
    trust = TrustStore(home.cru / "trust.json")
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text("---\ndescription: d\n---\nGo.\n")
        trust.trust(file)
    files[0].rename(files[0].with_name("gone"))
    assert cru("trust", "--revoke", home=home).out.count("poet.md: forgotten") == 2
    assert not any(TrustStore(home.cru / "trust.json").is_known(file) for file in files)


FAILING = "local helper = require('helper')\ncru.on('message:received', function() helper() end)"


def test_what_fails_in_a_trusted_plugin_names_the_file_that_was_edited(home: HomeDir) -> None:
    folder = plugin(home, "demo/init.lua", FAILING).parent
    plugin(home, "demo/lua/helper.lua", "return function()\n  error('no luck')\nend")
    broken = plugin(home, "broken.lua", "\nerror('not today')")
    typo = plugin(home, "typo.lua", "\n\nx = = 1")
    trust_project(home)
    run = turn(home)
    assert f"{folder}/lua/helper.lua:2: no luck" in run.err, run.err
    assert f"{broken}:2: not today" in run.err and f"{typo}:3: " in run.err
    assert str(home.cru / "trusted") not in run.err


def test_what_only_the_home_folder_sets_is_ignored_in_one_sentence_and_the_rest_is_accepted(home: HomeDir) -> None:
    plugin(home, "a.lua")
    file = home.project / ".cru" / "config.toml"
    file.write_text('fuel = 7\n[sandbox]\nmode = "on"\n[tools]\nenv_pass = ["GITHUB_TOKEN"]\n')
    (home.project / "crush.json").write_text('{"hooks": {"PreToolUse": [{"command": "true"}]}}')
    sentences = (
        f"{file}:2: `sandbox` is ignored: it counts only in ~/.cru/config.toml (a project must not loosen what confines it)",
        f"{file}:4: `tools` is ignored: it counts only in ~/.cru/config.toml (only you say which keys commands get)",
    )
    err = turn(home).err
    assert all(err.count(f"{sentence}\n") == 1 for sentence in sentences), err
    assert f"{file}:1: `fuel` is ignored: this project is not trusted" in err
    shown = trust_project(home).out
    assert f"what has no effect, accepted or not:\n  {sentences[0]}\n  {sentences[1]}\n" in shown, shown
    assert "! 1 file of plugins" in shown and "1 hook of this project awaits trust" in shown
    run = turn(home)
    assert "a.lua ran" in run.err and all(sentence in run.err for sentence in sentences), run.err
    assert cru("-n", "fuel", home=home).out == "7\n" and cru("-n", "sandbox.mode", home=home).out == "off\n"

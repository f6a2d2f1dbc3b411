"""`cru doctor`: what it says of a home that is well, and of each thing that is wrong; one probe hides no other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import HomeDir, cru, pty, server
from tests.kit.sandbox import needs_sandbox

from cru.core.compose.start import Start
from cru.faces.cli.doctor import command
from cru.faces.cli.doctor.findings import DoctorFinding, Patient

AREAS = {
    "settings",
    "installation",
    "home",
    "keys",
    "model",
    "hooks",
    "plugins",
    "mcp",
    "sandbox",
    "chat",
    "terminal",
    "programs",
}
KEY = "sk-kit-0123456789"


def doctor(home: HomeDir, *words: str, **env: str) -> tuple[int, list[dict[str, Any]]]:
    run = cru("doctor", "--json", *words, home=home, env=env)
    assert "Traceback" not in run.err and KEY not in run.out + run.err
    return run.code, msgspec.json.decode(run.out)


def of(findings: list[dict[str, Any]], area: str, level: str) -> str:
    return "\n".join(
        f"{f['text']} -> {f.get('advice', '')}" for f in findings if (f["area"], f["level"]) == (area, level)
    )


@pytest.mark.slow
def test_a_home_that_is_well_has_no_error_and_every_area_is_told(home: HomeDir) -> None:
    with server([]) as model:
        home.configure(url=model.url)
        code, findings = doctor(home, OPENAI_API_KEY=KEY)
    assert code == 0 and {finding["area"] for finding in findings} == AREAS
    assert of(findings, "keys", "ok").startswith("openai: OPENAI_API_KEY")
    assert "openai_compatible:mock at http://127.0.0.1" in of(findings, "model", "ok")
    assert of(findings, "sandbox", "ok").startswith("off, as environment CRU_SANDBOX says")


@pytest.mark.slow
@needs_sandbox
def test_a_sandbox_that_is_off_by_choice_is_no_warning_and_unusable_settings_say_nothing(home: HomeDir) -> None:
    home.sandbox = ""
    assert "of a project are confined by bubblewrap" in of(doctor(home)[1], "sandbox", "ok")
    home.configure("[sandbox]\nmode = 'off'\n")
    assert f"off, as {home.cru}/config.toml:2 says: commands may do all that you may" in of(
        doctor(home)[1], "sandbox", "ok"
    )
    home.configure("[sandbox]\nmode = 'atuo'\n")
    assert "not looked at: the settings cannot be used" in of(doctor(home)[1], "sandbox", "warn")


@pytest.mark.slow
def test_a_key_that_is_refused_and_a_server_that_is_gone_are_errors_unless_nobody_is_asked(home: HomeDir) -> None:
    with server([]) as model:
        model.key = KEY
        home.configure('api_key = "wrong"\n', url=model.url)
        code, findings = doctor(home)
        assert (
            code == 1
            and "does not accept the key" in of(findings, "model", "error")
            and f"-> cru login {model.url}" in of(findings, "model", "error")
        )
    code, findings = doctor(home)
    assert code == 1 and "does not answer" in of(findings, "model", "error")
    code, findings = doctor(home, "--offline")
    assert code == 0 and "not asked" in of(findings, "model", "ok")


@pytest.mark.slow
def test_settings_that_cannot_be_used_are_told_with_their_place_and_the_rest_too(home: HomeDir) -> None:
    home.configure('modle = "x"\nmode = "maybe"\n')
    code, findings = doctor(home)
    text = of(findings, "settings", "error")
    assert code == 1 and "config.toml:1: unknown setting `modle`" in text and "config.toml:2" in text
    assert {finding["area"] for finding in findings} == AREAS


@pytest.mark.slow
def test_keys_that_others_can_read_and_files_that_hold_none_are_told(home: HomeDir) -> None:
    home.configure(f'model = "scripted:{home.path}/model.txt"\n')
    (home.path / "model.txt").write_text("text: ok\n")
    keys = home.cru / "keys.json"
    keys.write_text(f'{{"openai": {{"key": "{KEY}"}}}}')
    keys.chmod(0o644)
    code, findings = doctor(home)
    assert code == 0 and f"{keys} can be read by others (644) -> chmod 600 {keys}" in of(findings, "home", "warn")
    assert of(findings, "keys", "ok").startswith(f"openai: {keys}")
    keys.write_text("[]")
    code, findings = doctor(home)
    assert code == 1 and "this is no file of keys" in of(findings, "keys", "error")


@pytest.mark.slow
def test_a_theme_and_keys_that_are_none_and_a_server_whose_program_is_missing_are_told(home: HomeDir) -> None:
    home.configure(
        f'model = "scripted:{home.path}/model.txt"\ntheme = "nonesuch"\n[keys]\nundo = ["ctrl-zz"]\n'
        "[mcp.servers.gone]\ncommand = 'no-such-program'\n"
        "[mcp.servers.there]\ncommand = 'sh'\n"
        "[mcp.servers.nearby]\ncommand = './server'\n"
        "[mcp.servers.nowhere]\ncommand = 'sh'\ncwd = 'nowhere'\n"
        "[mcp.servers.unset]\ncommand = '${NO_SUCH_VARIABLE}'\n"
    )
    (home.path / "model.txt").write_text("text: ok\n")
    code, findings = doctor(home)
    chat, servers = of(findings, "chat", "warn"), of(findings, "mcp", "error")
    assert "there is no theme `nonesuch`" in chat and "keys.undo: there is no key `ctrl-zz`" in chat
    assert "gone: there is no program no-such-program -> install it, or mend `command`: " in servers
    assert "nearby: there is no program ./server" in servers and "there:" not in servers
    assert f"nowhere: there is no folder {home.project}/nowhere" in servers
    assert "NO_SUCH_VARIABLE is not set" in servers
    assert code == 1
    program = home.project / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert "nearby" not in of(doctor(home)[1], "mcp", "error")


@pytest.mark.slow
def test_a_broken_hook_is_an_error(home: HomeDir) -> None:
    home.configure('model = "ollama:m"\n[[hooks.entries]]\nevent = "no:such"\ncommand = "true"\n')
    code, findings = doctor(home, "--offline")
    assert code == 1 and "no:such" in of(findings, "hooks", "error") + of(findings, "settings", "error")


@pytest.mark.slow
def test_plugins_say_how_they_are_and_those_that_cannot_be_loaded_too(home: HomeDir) -> None:
    home.configure('model = "ollama:m"\n')
    health = 'return { check = function() cru.health.start("sick") cru.health.%s("it is old", "update it") end }\n'
    for name, start, check in (
        ("old", "", health % "warn"),
        ("sick", "", health % "error"),
        ("lost", "error('no')", ""),
    ):
        folder = home.cru / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "init.lua").write_text(start)
        if check:
            (folder / "health.lua").write_text(check)
    code, findings = doctor(home, "--offline")
    assert code == 1
    assert "old: it is old -> update it" in of(findings, "plugins", "warn")
    told, *errors = of(findings, "plugins", "error").splitlines()
    assert "lost/init.lua: this plugin has no effect" in told  # what its text alone shows
    assert errors[0].startswith("lost: ") and "init.lua:1: no" in errors[0]
    assert errors[1:] == ["sick: it is old -> update it"]


@pytest.mark.slow
def test_lines_for_people_say_how_to_mend(home: HomeDir) -> None:
    with pty("doctor", "--offline", home=home, is_first_prompt_enough=True) as terminal:
        terminal.expect("error  model")
        terminal.expect("leads through it")
        terminal.expect("xterm-256color, 80×24")
        assert terminal.wait() == 1


def test_a_probe_that_raises_or_hangs_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def raising(_patient: Patient) -> list[DoctorFinding]:
        raise RuntimeError("it broke")

    async def hanging(_patient: Patient) -> list[DoctorFinding]:
        await asyncio.Event().wait()
        return []

    async def well(_patient: Patient) -> list[DoctorFinding]:
        return [DoctorFinding("c", "ok", "fine")]

    monkeypatch.setattr(command, "PROBES", {"a": raising, "b": hanging, "c": well})
    monkeypatch.setattr(command, "SECONDS", 0.05)
    patient = Patient(Start(tmp_path, "default", {}, tmp_path, tmp_path), None)
    findings = asyncio.run(command._probe_all(patient))
    assert [(finding.area, finding.level) for finding in findings] == [("a", "error"), ("b", "error"), ("c", "ok")]
    assert "RuntimeError: it broke" in findings[0].text and "within 0.05 s" in findings[1].text


@pytest.mark.slow
def test_what_waits_for_trust_is_told_once_with_what_helps_and_each_thing_in_its_place(home: HomeDir) -> None:
    home.configure('model = "ollama:m"\n[permissions]\nallow = ["wirte:src"]\n')
    folder = home.project / ".cru" / "plugins"
    folder.mkdir(parents=True)
    (folder / "prog").write_text("#!/bin/sh\ntrue\n")
    (folder / "prog").chmod(0o755)
    (folder.parent / "config.toml").write_text('mode = "trust"\n')
    (home.project / "crush.json").write_text('{"hooks": {"PreToolUse": [{"command": "true"}]}}')
    _, findings = doctor(home, "--offline")
    warned = [f for f in findings if f["level"] != "ok" and f["area"] not in ("sandbox", "programs", "terminal")]
    assert [f["area"] for f in warned] == ["settings", "hooks", "permissions", "plugins"], warned
    settings, hook, rule, plugin = warned
    assert "`mode` is ignored" in settings["text"] and "then `cru trust`" in settings["text"]
    assert "crush.json:1" in hook["text"] and hook["advice"] == "cru hooks review"
    assert "rule `wirte:src` names no tool" in rule["text"] and rule["advice"] == "did you mean `write`?"
    assert plugin["text"].startswith("1 plugin of this project is not loaded") and "cru trust" in plugin["text"]
    assert "advice" not in plugin and of(findings, "plugins", "ok") == ""


def test_a_plugin_that_is_off_is_named_and_health_is_written_for_programs(home: HomeDir) -> None:
    home.configure('model = "ollama:m"\n[plugins.still]\nenabled = false\n')
    (home.cru / "plugins" / "still").mkdir(parents=True)
    (home.cru / "plugins" / "still" / "init.lua").write_text("")
    run = cru("plugin", "health", "still", "--json", home=home)
    report = {"plugins": [{"name": "still", "state": "disabled", "checks": None}], "notices": []}
    assert (run.code, msgspec.json.decode(run.out)) == (0, report), run
    assert "still: nothing to report, it is disabled" in cru("plugin", "health", "still", home=home).out


@pytest.mark.sample(1)
@pytest.mark.parametrize(("config", "level"), [("", "warn"), ('model = "scripted:x"\n', "ok")])
def test_no_key_is_fine_only_where_a_model_is_configured(home: HomeDir, config: str, level: str) -> None:
    home.configure(config)
    _, findings = doctor(home, "--offline")
    assert of(findings, "keys", level).startswith("there is none")

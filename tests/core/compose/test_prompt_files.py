"""Commands and skills of people through the real command: what reaches the model, what waits for a person, and what the gate says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.kit.home import HomeDir, home
from tests.kit.run import Done, cru

ECHO = "text: done\n"


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    place = home(tmp_path)
    script(place, ECHO)
    return place


def script(here: HomeDir, text: str, config: str = "") -> None:
    (here.path / "model.txt").write_text(f"loop: yes\n---\n{text}")
    here.configure(f'model = "scripted:{here.path}/model.txt"\n{config}')


def put(here: HomeDir, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = here.path / name[2:] if name.startswith("~/") else here.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def trust(here: HomeDir) -> Done:
    shown = cru("trust", "--show", home=here).out
    named = re.search(r"--yes (\w+)", shown)
    assert named, shown
    assert cru("trust", "--yes", named[1], home=here).code == 0
    return Done(0, shown, "")


def prompts(here: HomeDir) -> list[str]:
    """What the model read of each prompt."""
    log = here.log()
    outcomes = [e for e in log if e["entry_type"] == "message_resolved" and not e["metadata"].get("blocked")]
    resolved = {e["metadata"]["ref"]: e["content"] for e in outcomes}
    asked = [e for e in log if e["entry_type"] == "message" and e["from"] == "user"]
    return [resolved[e["id"]] or e["content"] for e in asked if e["id"] in resolved]


def results(here: HomeDir) -> list[str]:
    return [e["content"] for e in here.log() if e["entry_type"] == "tool_result"]


def test_a_command_of_a_stranger_runs_nothing_before_the_project_is_trusted(here: HomeDir) -> None:
    put(
        here, {".claude/commands/st.md": "State: !`touch ran; echo \x1b[2Jfine`", ".claude/commands/plain.md": "Do $0."}
    )
    assert cru("/plain it", home=here).code == 0 and prompts(here) == ["Do it."]
    refused = cru("-t", "/st", home=here)
    assert refused.code != 0 and "is not trusted" in refused.err and "cru trust" in refused.err
    assert not (here.project / "ran").exists()
    shown = trust(here).out
    assert "! .claude/commands/st.md" in shown and "touch ran" in shown and "\x1b" not in shown
    assert cru("-t", "/st", home=here).code == 0 and (here.project / "ran").exists()
    put(here, {".claude/commands/st.md": "State: !`touch ran2`"})
    assert "has changed since" in cru("-t", "/st", home=here).err
    assert cru("trust", "--revoke", home=here).code == 0 and not (here.project / "ran2").exists()


def test_what_a_command_runs_is_judged_as_any_call(here: HomeDir) -> None:
    put(here, {"~/.claude/commands/st.md": "State: !`touch ran` end"})
    asked = cru("/st", home=here)
    assert asked.code != 0 and "touch ran" in asked.err and not (here.project / "ran").exists() and not prompts(here)
    script(here, ECHO, '[permissions]\ndeny = ["bash:touch *"]\n')
    assert "the rule `bash:touch *`" in cru("-t", "/st", home=here).err and not (here.project / "ran").exists()
    script(here, ECHO, '[permissions]\nallow = ["bash:touch ran"]\n')
    assert cru("/st", home=here).code == 0 and prompts(here) == ["State:  end"]


def test_allowed_tools_hold_until_the_next_prompt(here: HomeDir) -> None:
    put(here, {"~/.claude/commands/go.md": "---\nallowed-tools: Bash(touch:*)\n---\nGo !`touch a`."})
    script(here, 'call: bash {"command": "touch b"}\n---\ntext: done\n')
    assert cru("/go", home=here).code == 0
    assert (here.project / "a").exists() and (here.project / "b").exists()
    script(here, 'call: bash {"command": "touch c"}\n---\ntext: done\n')
    cru("go on", home=here)
    assert not (here.project / "c").exists() and not (here.cru / "grants.json").exists()


def test_files_that_a_command_names_are_judged_too(here: HomeDir) -> None:
    put(
        here,
        {".claude/commands/at.md": "See @in.txt @~/.ssh/id_rsa @link.txt @.env", "in.txt": "inside", ".env": "KEY=1"},
    )
    put(here, {"~/.ssh/id_rsa": "PRIVATE", "~/out.txt": "OUTSIDE"})
    (here.project / "link.txt").symlink_to(here.path / "out.txt")
    script(here, ECHO, '[permissions]\ndeny = ["read:.env"]\n')
    run = cru("-t", "/at", home=here)
    [prompt] = prompts(here)
    assert "inside" in prompt and not {"PRIVATE", "OUTSIDE", "KEY=1"} & set(re.findall(r"[A-Z]+(?:=1)?", prompt))
    assert run.err.count("is not brought along") == 3


def test_a_name_of_a_command_of_cru_and_one_that_nobody_can_type_are_told_once(here: HomeDir) -> None:
    put(
        here, {".claude/commands/clear.md": "x", ".claude/commands/My Command.md": "x", ".claude/commands/UP.md": "Up."}
    )
    first = cru("hello", home=here).err
    assert "/clear is a command of cru" in first and "My Command.md is no command" in first
    assert "command" not in cru("/UP", home=here).err and prompts(here)[-1] == "Up."


def test_what_has_no_effect_is_told_once(here: HomeDir) -> None:
    (here.project / ".claude" / "output-styles").mkdir(parents=True)
    assert ".claude/output-styles has no effect in cru" in cru("hello", home=here).err
    assert cru("hello", home=here).err == ""


def test_the_next_request_shows_how_many_skills_it_names(here: HomeDir) -> None:
    put(here, SKILLS)
    assert re.search(r"section +skills +\(2 skill files\)", cru("trace", "--next", home=here).out)


def test_help_lists_them_with_their_words(here: HomeDir) -> None:
    put(
        here,
        {
            ".claude/commands/git/fix.md": '---\ndescription: "Fixes \\e[2J it"\nargument-hint: [issue]\n---\nx',
            ".agents/skills/pdf/SKILL.md": "---\ndescription: Works with PDF\n---\nx",
            ".agents/skills/own/SKILL.md": "---\ndescription: y\nuser-invocable: false\n---\nx",
        },
    )
    text = cru("/help", home=here).out
    assert "/git:fix [issue]" in text and "/pdf" in text and "/own" not in text and "\x1b" not in text
    assert "for the model alone" in cru("/own", home=here).err
    assert "did you mean" in cru("/git:fx", home=here).err or "unknown command" in cru("/git:fx", home=here).err


def test_a_model_of_a_command_that_no_setting_knows_is_told(here: HomeDir) -> None:
    put(here, {"~/.claude/commands/go.md": "---\nmodel: haiku\n---\nGo."})
    run = cru("/go", home=here)
    assert run.code == 0 and "no setting says which model `haiku` is" in run.err


def test_a_skill_that_cannot_be_read_and_a_key_that_nobody_knows_are_told_once(here: HomeDir) -> None:
    put(
        here,
        {
            ".claude/skills/a/SKILL.md": "---\na: 1\n b: 2\n---\nx",
            ".claude/skills/b/SKILL.md": "---\ndescripton: y\n---\nx",
        },
    )
    run = cru("hello", home=here)
    assert run.code == 0 and "front matter cannot be read" in run.err and "did you mean `description`?" in run.err
    assert cru("hello", home=here).err == ""


SKILLS = {
    ".claude/skills/pdf/SKILL.md": "---\ndescription: Works with PDF\n---\nDo it with $ARGUMENTS.",
    ".claude/skills/run/SKILL.md": "---\ndescription: Runs\n---\nRun scripts/x.sh.",
    ".claude/skills/run/scripts/x.sh": "echo ran",
}


@pytest.mark.parametrize(
    ("call", "config", "text"),
    [
        ('{"name": "pdf", "arguments": "a b"}', "", "Do it with a b."),
        ('{"name": "run"}', "", "is not trusted"),
        ('{"name": "pfd"}', "", "did you mean `pdf`?"),
        ('{"search": "PDF"}', "", "- pdf: Works with PDF"),
        ('{"search": "zebra"}', "", "no skill fits"),
        ("{}", "", "it is missing"),
        ('{"name": 3}', "", "expected text"),
        ('{"name": "pdf"}', '[permissions]\ndeny = ["skill:pdf"]\n', "the rule `skill:pdf`"),
        ('{"name": "pdf"}', "[prompt_files]\nskills = false\n", "skill"),
    ],
)
def test_the_model_loads_a_skill(here: HomeDir, call: str, config: str, text: str) -> None:
    put(here, SKILLS)
    script(here, f"call: skill {call}\n---\ntext: done\n", config)
    assert cru("hello", home=here).code == 0
    [result] = results(here)
    assert text in result
    if "skills = false" in config:
        assert "Do it" not in result and "skills" not in cru("trace", "--next", home=here).out


def test_a_skill_with_scripts_is_loaded_once_it_is_trusted(here: HomeDir) -> None:
    put(here, SKILLS)
    script(here, 'call: skill {"name": "run"}\n---\ntext: done\n')
    shown = trust(here).out
    assert "! .claude/skills/run" in shown and "scripts/x.sh" in shown and "echo ran" in shown
    assert cru("hello", home=here).code == 0 and "Run scripts/x.sh." in results(here)[0]


def test_texts_of_the_users_own_skills_are_read_without_a_question(here: HomeDir) -> None:
    put(
        here,
        {
            "~/.claude/skills/pdf/SKILL.md": "---\ndescription: x\n---\nSee more.md.",
            "~/.claude/skills/pdf/more.md": "more",
        },
    )
    script(here, f'call: read {{"file_path": "{here.path}/.claude/skills/pdf/more.md"}}\n---\ntext: done\n')
    assert cru("hello", home=here).code == 0 and "more" in results(here)[0]


def test_folders_of_claude_settings_count_as_the_project_once_they_are_trusted(here: HomeDir) -> None:
    put(here, {".claude/settings.json": '{"permissions": {"additionalDirectories": ["../beside"]}}'})
    (here.path.parent / "beside").mkdir()
    script(
        here,
        f'call: write {{"file_path": "{here.path.parent}/beside/a", "content": "x"}}\n---\ntext: done\n',
        'mode = "auto"\n',
    )
    assert cru("hello", home=here).code == 0 and not (here.path.parent / "beside" / "a").exists()
    assert "! folder" in trust(here).out
    assert cru("hello", home=here).code == 0 and (here.path.parent / "beside" / "a").exists()


def test_a_sub_agent_has_skills_and_the_guides_of_folders_of_its_own(here: HomeDir) -> None:
    put(here, {**SKILLS, "sub/AGENTS.md": "guide below", "sub/f.txt": "content"})
    read = 'call: read {"file_path": "sub/f.txt"}'
    asked = 'call: task {"agent": "explore", "prompt": "look", "description": "d"}'
    (here.path / "agent.txt").write_text(
        f'call: skill {{"name": "pdf", "arguments": "x"}}\n---\n{read}\n---\ntext: seen\n'
    )
    script(
        here,
        f"{asked}\n---\n{read}\n---\ntext: done\n",
        f'[agents.model_aliases]\nhaiku = "scripted:{here.path}/agent.txt"\n',
    )
    put(here, {"~/.claude/agents/explore.md": "---\nname: explore\ndescription: looks\nmodel: haiku\n---\nLook."})
    assert cru("-t", "hello", home=here).code == 0
    [log] = here.context().glob("tasks/*/context.jsonl")
    text = log.read_text()
    assert "Do it with x." in text and "guide below" in text
    assert ["guide below" in result for result in results(here)] == [False, True]


# who hears of a command before anything of it runs ---------------------------------------------------------------------------------


def claude_hook(here: HomeDir, event: str, command: str) -> None:
    hooks = {event: [{"hooks": [{"type": "command", "command": command}]}]}
    put(here, {"~/.claude/settings.json": json.dumps({"hooks": hooks})})
    script(here, ECHO, '[hooks]\ndialects = ["claude"]\n')


def test_a_refused_prompt_runs_nothing_and_is_heard_as_it_was_typed(here: HomeDir) -> None:
    put(here, {"~/.claude/commands/deploy.md": "State: !`touch ran`"})
    heard = here.path / "heard.json"
    claude_hook(here, "UserPromptSubmit", f"cat > {heard}; echo 'not today' >&2; exit 2")
    done = cru("-t", "/deploy now", home=here)
    assert done.code == 3 and "not today" in done.err
    assert json.loads(heard.read_text())["prompt"] == "/deploy now"
    assert not (here.project / "ran").exists()


REWRITES: dict[str, tuple[str, str]] = {
    "its arguments": ("/say two", "Say two."),
    "another command": ("/other", "Another."),
    "a prompt": ("say nothing", "say nothing"),
    "the same": ("/say one", "Say one."),
}


@pytest.mark.parametrize("name", REWRITES)
def test_a_handler_may_change_what_was_typed(here: HomeDir, name: str) -> None:
    becomes, sent = REWRITES[name]
    put(here, {"~/.claude/commands/say.md": "Say $0.", "~/.claude/commands/other.md": "Another."})
    plugin = f'cru.on("message:received", function(ctx, e) e.content = "{becomes}" return e end)'
    put(here, {"~/.cru/init.lua": plugin})
    done = cru("/say one", home=here)
    assert done.code == 0 and prompts(here) == [sent], done


def test_a_line_that_a_hook_refuses_leaves_its_reason_in_the_text(here: HomeDir) -> None:
    put(here, {"~/.claude/commands/two.md": "A: !`touch one` B: !`echo two`"})
    heard = here.path / "heard.json"
    claude_hook(
        here, "PreSkillShellCommand", f"tee -a {heard} | grep -q touch && {{ echo 'no touching' >&2; exit 2; }}; exit 0"
    )
    done = cru("-t", "/two", home=here)
    assert done.code == 0 and not (here.project / "one").exists()
    assert prompts(here) == ["A: [not run: blocked by hook: no touching] B: two"]
    read = [json.loads(part) for part in heard.read_text().replace("}{", "}\n{").splitlines()]
    assert [one["tool_use_id"].partition(":")[2] for one in read] == ["preamble-0", "preamble-1"]
    assert {(one["command_name"], one["command_source"], one["invoked_by"]) for one in read} == {
        ("two", "userSettings", "user")
    }


def test_a_command_that_was_cut_short_is_read_again_with_resume(here: HomeDir) -> None:
    put(here, {"~/.claude/commands/say.md": "Say !`cat word`."})
    assert cru("-t", "/say", home=here).code != 0  # there is no such file yet
    put(here, {"word": "hello"})
    done = cru("-t", "--resume", home=here)
    assert done.code == 0 and prompts(here) == ["Say hello."], done

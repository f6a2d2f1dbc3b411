"""What a hostile model or a hostile repository tried once: each stays shut, through the real command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.kit import Call, Reply, cru, home, server, trust_project


def results(log: list[dict[str, object]]) -> list[str]:
    return [str(e["content"]) for e in log if e["entry_type"] == "tool_result"]


@pytest.mark.parametrize(
    ("is_decided_ahead", "why"), [(False, "Not allowed by policy"), (True, "a call before it changed")]
)
def test_a_link_made_by_a_call_of_the_same_reply_does_not_move_a_write(
    tmp_path: Path, is_decided_ahead: bool, why: str
) -> None:
    """Codex' hooks judge all calls of a reply first; then the links are made after the writes were allowed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    calls = [
        Call("bash", {"command": f"ln -s {outside} link"}),
        Call("write", {"file_path": "link/evil.txt", "content": "x"}),
        Call("bash", {"command": "ln -s secret s"}),
        Call("write", {"file_path": "s/evil.txt", "content": "x"}),
    ]
    rules = '[permissions]\nallow = ["bash:ln *"]\ndeny = ["write:secret/**"]\n[hooks]\ndialects = ["codex"]\n'
    with server([Reply(calls=calls), Reply("done")]) as model:
        here = home(tmp_path, config=rules, url=model.url)
        (here.project / "secret").mkdir()
        if is_decided_ahead:
            (here.path / ".codex").mkdir()
            hook = '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}'
            (here.path / ".codex/hooks.json").write_text(hook)
        done = cru("--mode", "auto", "go", home=here)
    assert done.code == 0
    assert list(outside.iterdir()) == []
    assert list((here.project / "secret").iterdir()) == []
    assert sum(why in text for text in results(here.log())) == 2


def test_a_read_does_not_overtake_a_write_of_the_same_reply(tmp_path: Path) -> None:
    calls = [Call("write", {"file_path": "n.txt", "content": "fresh"}), Call("read", {"file_path": "n.txt"})]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        cru("-t", "go", home=here)
    assert "fresh" in results(here.log())[1]


def test_guides_that_lead_out_of_the_project_or_are_no_files_are_not_read(tmp_path: Path) -> None:
    with server([Reply("one"), Reply("two")]) as model:
        here = home(tmp_path, url=model.url)
        (tmp_path / "private.txt").write_text("the crown jewels")
        (here.project / "AGENTS.md").symlink_to(tmp_path / "private.txt")
        assert cru("go", home=here).code == 0
        assert b"crown jewels" not in model.requests[0].raw
        assert b"leads out of the project" in model.requests[0].raw
        (here.project / "AGENTS.md").unlink()
        os.mkfifo(here.project / "AGENTS.md")
        assert cru("go", home=here).code == 0
        assert b"is no file" in model.requests[1].raw


def test_trust_of_one_project_is_not_lent_to_another_by_a_link(tmp_path: Path) -> None:
    with server([Reply(calls=[Call("bash", {"command": "touch PWNED"})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        good = tmp_path / "good"
        (good / ".cru").mkdir(parents=True)
        (good / ".cru" / "config.toml").write_text('mode = "trust"\n')
        trust_project(here, cwd=good)
        (here.project / ".cru").mkdir()
        (here.project / ".cru" / "config.toml").symlink_to(good / ".cru" / "config.toml")
        done = cru("go", home=here)
    assert not (here.project / "PWNED").exists()
    assert "leads out of the project" in done.err


def test_a_key_in_a_guide_is_not_kept_in_the_records(tmp_path: Path) -> None:
    with server([Reply("one")]) as model:
        here = home(tmp_path, url=model.url)
        (here.project / "AGENTS.md").write_text("our key is kit-key-12345678")
        here.configure('api_key = "kit-key-12345678"\n', url=model.url)
        assert cru("go", home=here).code == 0
    records = [p.read_text() for p in here.context().rglob("*") if p.is_file() and p.name != "context.jsonl"]
    assert not [text for text in records if "kit-key-12345678" in text]


def test_lines_of_the_inbox_that_are_no_messages_are_kept_and_told(tmp_path: Path) -> None:
    with server([Reply("read")]) as model:
        here = home(tmp_path, url=model.url)
        here.context().mkdir(parents=True)
        good = '{"id":"1","timestamp":1,"from":"other","to":"default","content":"good"}'
        (here.context() / "inbox.jsonl").write_text(f"{good}\nprecious text\n")
        done = cru("go", home=here)
    assert "[From: other] good" in model.requests[0].body["messages"][-1]["content"]
    assert "precious text" in (here.context() / "inbox.rejected.jsonl").read_text()
    assert "inbox" in done.err


def test_a_search_shows_nothing_of_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    rules = '[permissions]\ndeny = ["read:.env", "read:keys/**", "read:../private"]\n'
    calls = [Call("grep", {"pattern": "SECRET", "path": path}) for path in (".", "way", "way/..", "..", "sub/../keys")]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here = home(tmp_path, config=rules, url=model.url)
        for name in (".env", "keys/in/id", "keys/two\nlines", "sub/.env", "../private/a"):
            (here.project / name).parent.mkdir(parents=True, exist_ok=True)
            (here.project / name).write_text("SECRET=xyzzy\n")
        (here.project / "way").symlink_to("keys/in")
        (here.project / "a.txt").write_text("no SECRET here\n")
        assert cru("-t", "go", home=here).code == 0
    shown = results(here.log())
    assert not [text for text in shown if "xyzzy" in text]
    assert (
        sum("Not allowed by policy: the rule `read:keys/**`" in text for text in shown) == 2
    )  # `way/..` is `.` (docs/decisions/tool-calls.md)
    assert "a.txt:1:no SECRET here\n[4 files left out: rules forbid to read them]" in shown
    assert any("/project/a.txt:1:no SECRET here" in text for text in shown)


def test_searching_reveals_nothing_that_reading_may_not(tmp_path: Path) -> None:
    private = "the crown jewels"
    calls = [
        Call("grep", {"pattern": "crown"}),
        Call("grep", {"pattern": "crown", "path": "sub"}),
        Call("glob", {"pattern": "**/*"}),
        Call("edit", {"file_path": "sub/.env", "old_string": "the crown jewel!", "new_string": "x"}),
    ]
    rules = '[permissions]\ndeny = ["read:.env"]\nask = ["read:*.pem"]\n'
    with server([Reply(calls=calls), Reply("done")]) as model:
        here = home(tmp_path, config=rules, url=model.url)
        top = here.cru.parent
        for name in (".ssh/id_rsa", ".kube/config", ".config/gh/hosts.yml", "sub/.env", "sub/a.pem", "notes"):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(private)
        assert cru("--mode", "auto", "--project-root", str(top), "go", home=here, cwd=top).code == 0
    shown = results(here.log())
    assert [text.splitlines()[:2] for text in shown if private in text] == [
        [f"notes:1:{private}", "[1 file left out: rules forbid to read them]"]
    ]
    assert not [name for name in ("id_rsa", "hosts.yml", ".env:", "a.pem") if name in "\n".join(shown)]
    assert sum("files not shown: reading them needs a question" in text for text in shown) == 2


def test_an_allow_rule_for_a_program_covers_no_option_that_writes_or_runs_something(tmp_path: Path) -> None:
    commands = [
        "git log --outp=PWNED",
        "git grep -Otouch x",
        "find . -fprint PWNED",
        "sed -n 'w PWNED' a",
        "sort a -oPWNED",
        "find . -name a",
    ]
    config = '[permissions]\nallow = ["bash:git *", "bash:find *", "bash:sed *", "bash:sort *"]\n'
    calls = [Call("bash", {"command": command}) for command in commands]
    with server([Reply(calls=calls), Reply("done")]) as model:
        here = home(tmp_path, config=config, url=model.url)
        (here.project / "a").write_text("x\n")
        done = cru("go", home=here)
    shown = results(here.log())
    assert done.code == 0 and not (here.project / "PWNED").exists()
    assert [text.startswith("Not allowed by policy") for text in shown] == [True] * 5 + [False]
    assert "no allow rule writes out `--outp`, which writes to a place of its own" in shown[0]
    assert "no allow rule writes out `-O`, which may run another program" in shown[1]

"""The tools over the vault, called by a model through the whole road of permissions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.features.vault.support import write_notes
from tests.kit import HomeDir, Reply, cru, home, server

NOTES = {
    "Home.md": "# Home\nSee [[Retry policy]] and [[Nowhere]].\n",
    "plans/Retry policy.md": "Try again with a growing pause.\n",
    "private/Diary.md": "a growing worry, see [[Home]]\n",
    "Evil.md": "growing \x1b]0;owned\x07\n",
}


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    made = home(tmp_path)
    write_notes(made.path / "notes", NOTES)
    return made


def result(here: HomeDir, tool: str, args: dict[str, object], *flags: str, config: str = "", vault: str = "") -> str:
    """What the model reads of one call."""
    (here.path / "model.txt").write_text(f"call: {tool} {json.dumps(args)}\n---\ntext: done\n")
    path = vault or f"{here.path}/notes"
    here.configure(f'model = "scripted:{here.path}/model.txt"\n{config}\n[vault]\npath = "{path}"\n')
    done = cru(*flags, "-c", "new", "go", home=here)
    assert (done.code, done.out) == (0, "done\n"), done
    (context,) = (path for path in (here.cru / "contexts").iterdir() if path.is_dir())
    (answer,) = [entry["content"] for entry in here.log(context.name) if entry["entry_type"] == "tool_result"]
    assert "\x1b" not in answer
    return str(answer)


def test_the_model_searches_the_vault_outside_of_the_project_without_a_question(here: HomeDir) -> None:
    answer = result(here, "vault_search", {"query": "growing pause"})
    assert answer == "plans/Retry policy.md\n    Try again with a **growing** **pause**."


def test_what_rules_hide_is_not_found(here: HomeDir) -> None:
    config = f'[permissions]\ndeny = ["read:{here.path}/notes/private/*"]\n'
    answer = result(here, "vault_search", {"query": "growing worry OR pause"}, config=config)
    assert "Diary" not in answer and "worry" not in answer and "[1 file left out: rules forbid to read them]" in answer


@pytest.mark.parametrize("rule", ["read:{}/private/*", "vault_read", "read:{}/*"])
def test_a_rule_for_paths_or_for_the_tool_denies_a_read(here: HomeDir, rule: str) -> None:
    config = f"[permissions]\ndeny = {json.dumps([rule.format(here.path / 'notes')])}\n"
    answer = result(here, "vault_read", {"path": "private/Diary"}, config=config)
    assert answer.startswith("Not allowed by policy: the rule") and "worry" not in answer


def test_links_leave_out_what_rules_hide(here: HomeDir) -> None:
    assert result(here, "vault_links", {"path": "Home.md"}) == (
        "links to:\n  plans/Retry policy.md\nlinked from:\n  private/Diary.md\nline 2: [[Nowhere]] leads to no note"
    )


def test_links_of_denied_notes_are_not_shown(here: HomeDir) -> None:
    config = f'[permissions]\ndeny = ["read:{here.path}/notes/private/*"]\n'
    assert "Diary" not in result(here, "vault_links", {"path": "Home.md", "depth": 2}, config=config)


def test_a_note_is_read_with_line_numbers(here: HomeDir) -> None:
    assert (
        result(here, "vault_read", {"path": "Home"}) == "     1\t# Home\n     2\tSee [[Retry policy]] and [[Nowhere]]."
    )


def test_a_title_is_no_path_and_the_path_is_told(here: HomeDir) -> None:
    answer = result(here, "vault_read", {"path": "Retry policy"})
    assert answer == "there is no note `Retry policy.md`: the note of that name has the path `plans/Retry policy.md`"


@pytest.mark.sample(6)
@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", ".obsidian/x", "a\0b", "x/../../y"])
@pytest.mark.parametrize("tool", ["vault_read", "vault_write", "vault_links"])
def test_no_path_leads_out_of_the_vault(here: HomeDir, tool: str, path: str) -> None:
    args: dict[str, object] = {"path": path, **({"content": "x"} if tool == "vault_write" else {})}
    assert result(here, tool, args, "-t").startswith(f"bad arguments for {tool}: `path`: not a note of this vault")


def test_a_link_out_of_the_vault_is_not_followed(here: HomeDir) -> None:
    (here.path / "outside").mkdir()
    (here.path / "notes" / "way").symlink_to(here.path / "outside")
    answer = result(here, "vault_write", {"path": "way/x", "content": "x"}, "-t")
    assert "leads out of the vault" in answer and not (here.path / "outside" / "x.md").exists()


@pytest.mark.parametrize(
    ("flags", "config", "reason"),
    [
        ((), "", "ask mode asks before"),
        (("--mode", "plan"), "", "plan mode"),
        (("--mode", "auto"), "", "outside the project folder"),
        (("-t",), '[permissions]\ndeny = ["vault_write"]\n', "the rule `vault_write`"),
    ],
)
def test_writing_is_judged_as_any_write(here: HomeDir, flags: tuple[str, ...], config: str, reason: str) -> None:
    answer = result(here, "vault_write", {"path": "New", "content": "x"}, *flags, config=config)
    assert answer.startswith("Not allowed by policy: ") and (reason in answer or "outside" in answer)
    assert not (here.path / "notes" / "New.md").exists()


def test_a_rule_allows_writing_notes(here: HomeDir) -> None:
    config = f'[permissions]\nallow = ["vault_write:{here.path}/notes/**"]\n'
    assert result(here, "vault_write", {"path": "ideas/New", "content": "see [[Home]]\n"}, config=config) == (
        "Created ideas/New.md (13 bytes)."
    )
    assert (here.path / "notes" / "ideas" / "New.md").read_text() == "see [[Home]]\n"
    assert "ideas/New.md" in cru("vault", "links", "Home", home=here).out


def test_nothing_is_overwritten_unless_that_is_said(here: HomeDir) -> None:
    assert "is there already" in result(here, "vault_write", {"path": "Home", "content": "x"}, "-t")


def test_a_note_is_replaced_if_that_is_said(here: HomeDir) -> None:
    assert result(here, "vault_write", {"path": "Home", "content": "x", "overwrite": True}, "-t") == (
        "Replaced Home.md (1 bytes)."
    )


@pytest.mark.parametrize(
    ("tool", "args", "told"),
    [
        ("vault_search", {}, "`query`: required, but missing"),
        ("vault_search", {"query": "x", "limit": 0}, "`limit`"),
        ("vault_search", {"query": '"open'}, "the quotation mark at column 1 is not closed"),
        ("vault_search", {"query": "zeppelin"}, "(no note has that)"),
        ("vault_write", {"path": "x"}, "`content`: required, but missing"),
        ("vault_links", {"path": "none"}, "there is no note `none.md`"),
    ],
)
def test_bad_arguments_are_told_to_the_model(here: HomeDir, tool: str, args: dict[str, object], told: str) -> None:
    assert told in result(here, tool, args)


def test_a_vault_that_has_gone_is_the_result(here: HomeDir) -> None:
    (here.path / "model.txt").write_text('call: vault_search {"query": "x"}\n---\ntext: done\n')
    here.configure(f'model = "scripted:{here.path}/model.txt"\n[vault]\npath = "{here.path}/nowhere"\n')
    done = cru("go", home=here)
    assert (done.code, done.out) == (0, "done\n") and "is not there" in done.err and "Traceback" not in done.err


def test_a_home_folder_as_the_vault_opens_no_secrets(here: HomeDir) -> None:
    (here.path / ".ssh").mkdir()
    (here.path / ".ssh" / "id.md").write_text("key\n")
    answer = result(here, "vault_search", {"query": "key"}, vault=str(here.path))
    assert "outside the project folder" in answer


def test_only_with_a_vault_the_model_has_these_tools(here: HomeDir) -> None:
    with server([Reply("a"), Reply("b")]) as model:
        here.configure(url=model.url)
        cru("hi", home=here)
        here.configure(f'[vault]\npath = "{here.path}/notes"\n', url=model.url)
        cru("hi", home=here)
    names = [[tool["function"]["name"] for tool in request.body["tools"]] for request in model.requests]
    assert [name for name in names[0] if name.startswith("vault")] == []
    assert names[1] == [*names[0], "vault_search", "vault_read", "vault_write", "vault_links"]

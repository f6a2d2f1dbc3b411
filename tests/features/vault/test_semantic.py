"""Search by meaning, with a small model of our own that knows a few synonyms: what is embedded, when again, and what is found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.features.vault.support import write_notes

from cru.features.vault import BadQuery, VaultSettings
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault

MEANINGS = [
    {"retry", "again", "repeat", "attempt"},
    {"money", "price", "cost", "bill"},
    {"bread", "baking", "dough"},
    {"secret", "password", "credential"},
]
NOTES = {
    "retry.md": "---\ntags: [net/http]\nstatus: open\n---\n# Backoff\nThe retry waits twice as long.\n",
    "sub/Attempts.md": "Each attempt is logged. #draft\n",
    "prices.md": "The price of a server.\n",
    "kitchen.md": "Dough rests overnight, baking comes later.\n",
}


class SynonymModel:
    """A dimension for each meaning, and a weak one that all texts have. texts: all that it was given"""

    def __init__(self, name: str = "synonyms 1", before: Callable[[], object] = lambda: None) -> None:
        self.name = name
        self.texts: list[str] = []
        self._before = before

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self._before()
        self.texts += texts
        rows = np.array([_vector(text) for text in texts], np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _vector(text: str) -> list[float]:
    words = [word.strip(".,:#").lower() for word in text.split()]
    counts = [float(sum(word.rstrip("s") in meaning for word in words)) for meaning in MEANINGS]
    return [*counts, 0.01]


@contextmanager
def vault_of(
    folder: Path, notes: dict[str, str] | None = None, model: SynonymModel | None = None, **settings: object
) -> Iterator[Vault]:
    """A vault that is embedded, in `folder`; `notes` are written into it."""
    root = folder / "notes"
    write_notes(root, NOTES if notes is None else notes)
    chosen = model or SynonymModel()
    vault = Vault(root, folder / "home", VaultSettings(str(root), **settings), lambda: chosen)  # type: ignore[arg-type]
    try:
        vault.update()
        vault.embed()
        yield vault
    finally:
        vault.close()


def paths(vault: Vault, text: str, mode: SearchMode = SearchMode.SEMANTIC, limit: int = 20) -> list[str]:
    return [hit.path for hit in vault.search_notes(text, limit, mode).hits]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("repeat", ["retry.md", "sub/Attempts.md"]),
        ("repeat #net", ["retry.md"]),
        ("repeat -#net", ["sub/Attempts.md"]),
        ("repeat path:sub/", ["sub/Attempts.md"]),
        ("repeat status:open", ["retry.md"]),
        ("repeat -logged", ["retry.md"]),
        ('repeat "twice as long"', ["retry.md"]),
        ("repeat log*", ["sub/Attempts.md"]),
        ("repeat title:attempts", ["sub/Attempts.md"]),
        ("repeat heading:backoff", ["retry.md"]),
        ("repeat OR again", ["retry.md", "sub/Attempts.md"]),
        ("cost", ["prices.md"]),
        ('"cost"', []),
        ("password", []),
        ("#draft", ["sub/Attempts.md"]),
    ],
)
def test_notes_are_found_by_what_they_mean(tmp_path: Path, query: str, expected: list[str]) -> None:
    with vault_of(tmp_path) as vault:
        assert sorted(paths(vault, query)) == expected


@pytest.mark.parametrize("mode", SearchMode)
@pytest.mark.parametrize("query", ["", "-draft", 'say "no', "()"])
def test_what_cannot_be_understood_is_so_in_every_mode(tmp_path: Path, query: str, mode: SearchMode) -> None:
    with vault_of(tmp_path) as vault, pytest.raises(BadQuery):
        vault.search_notes(query, 5, mode)


def test_both_ways_together(tmp_path: Path) -> None:
    with vault_of(tmp_path) as vault:
        result = vault.search_notes("attempt", mode=SearchMode.HYBRID)
        assert [hit.path for hit in result.hits] == ["sub/Attempts.md", "retry.md"]
        first, second = result.hits
        assert "\x02attempt\x03" in first.snippet and second.snippet.startswith("The retry waits")
        assert first.score == 1.0 and 0 < second.score < 0.5
        assert (result.mode, result.notice) == (SearchMode.HYBRID, "")
        assert paths(vault, "attempt", SearchMode.TEXT) == ["sub/Attempts.md"]
        assert paths(vault, "attempt", SearchMode.HYBRID, limit=1) == ["sub/Attempts.md"]


@pytest.mark.parametrize("mode", SearchMode)
def test_notes_that_must_not_be_shown_make_room_for_others(tmp_path: Path, mode: SearchMode) -> None:
    """The limit counts those that are shown."""
    notes = {f"{number:02}.md": f"bread {number}\n" for number in range(30)}
    with vault_of(tmp_path, notes) as vault:
        result = vault.search_notes("bread", 5, mode, lambda path: path >= "20")
        assert len(result.hits) == 5 and all(hit.path >= "20.md" and hit.snippet for hit in result.hits)


def test_the_snippet_is_the_passage_that_was_meant(tmp_path: Path) -> None:
    filler = "\n\n".join(f"Paragraph {number} is about something else. {'Words follow. ' * 40}" for number in range(20))
    long = f"# Plans\n{filler}\n\n## Kitchen\nHere dough lies.\n\n{filler}\n"
    with vault_of(tmp_path, {"long.md": long}) as vault:
        [hit] = vault.search_notes("bread", mode=SearchMode.SEMANTIC).hits
        assert hit.snippet.startswith("Here dough lies. Paragraph 0 is") and len(hit.snippet) <= 241


def test_only_what_changed_is_embedded_again(tmp_path: Path) -> None:
    model = SynonymModel()
    with vault_of(tmp_path, model=model) as vault:
        assert len(model.texts) == 4
        vault.write("prices.md", "The bill of a server.\n", overwrite=True)
        (vault.root / "kitchen.md").unlink()
        vault.update()
        assert paths(vault, "baking") == [], "a note that is gone is not found, whatever is embedded"
        assert (
            vault.search_notes("cost", mode=SearchMode.SEMANTIC).notice
            == "2 of 3 notes are known by their meaning so far"
        )
        model.texts.clear()
        vault.embed()
        assert model.texts == ["prices. The bill of a server."]
        assert paths(vault, "cost") == ["prices.md"]
    with vault_of(tmp_path, {}, again := SynonymModel()) as vault:
        assert again.texts == [] and paths(vault, "cost") == ["prices.md"]


def test_a_renamed_note_is_embedded_with_its_new_title(tmp_path: Path) -> None:
    with vault_of(tmp_path, {"a.md": "Nothing.\n"}, model := SynonymModel()) as vault:
        vault.rename("a.md", "Bread.md")
        vault.embed()
        assert model.texts == ["a. Nothing.", "Bread. Nothing."] and paths(vault, "dough") == ["Bread.md"]


def test_a_note_in_the_place_of_one_with_the_same_text(tmp_path: Path) -> None:
    """The index gives it the number of the one that is gone."""
    with vault_of(tmp_path, {"a.md": "Nothing.\n"}) as vault:
        [before] = vault.notes()
        (vault.root / "a.md").unlink()
        vault.update()
        vault.write("Bread.md", "Nothing.\n")
        [after] = vault.notes()
        assert after.id == before.id and after.digest == before.digest
        vault.embed()
        assert paths(vault, "dough") == ["Bread.md"]


def test_another_model_embeds_all_again(tmp_path: Path) -> None:
    with vault_of(tmp_path):
        pass
    with vault_of(tmp_path, {}, model := SynonymModel("synonyms 2")) as vault:
        assert len(model.texts) == 4 and vault.coverage().is_complete
        assert paths(vault, "cost") == ["prices.md"]


def test_vectors_of_another_model_are_not_compared(tmp_path: Path) -> None:
    """Also while this one has embedded nothing yet."""
    with vault_of(tmp_path):
        pass
    other = SynonymModel("synonyms 2")
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings(), lambda: other)
    try:
        vault.update()
        result = vault.search_notes("cost", mode=SearchMode.SEMANTIC)
        assert result.hits == [] and result.notice == "0 of 4 notes are known by their meaning so far"
    finally:
        vault.close()


def test_after_the_index_was_made_anew_old_vectors_do_not_count(tmp_path: Path) -> None:
    with vault_of(tmp_path) as vault:
        assert paths(vault, "cost") == ["prices.md"]
        (vault.root / "prices.md").write_text("dough\n")
        (vault.root / "kitchen.md").write_text("a bill\n")
        vault.rebuild()
        vault.embed()
        assert paths(vault, "cost") == ["kitchen.md", "prices.md"], "a title counts, too"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"---\nstatus: open\n---\n", b"```python\nprint('x')\n```\n", b"\xff\xfe broken \x80", b"zero\0byte", b"word " * 100_000,
        b"x" * 200_000, b"# Heading\n" * 2_000, b"x" * (5 << 20), ("ä" * 5_000).encode(), b"[[" * 2_000, b"\x80" * 5_000,
    ],
    ids=["empty", "front matter", "code", "bytes", "binary", "one line", "one word", "headings", "too large", "letters", "links", "tails"],
)  # fmt: skip
def test_a_note_of_any_content_is_found_by_its_title(tmp_path: Path, content: bytes) -> None:
    root = tmp_path / "notes"
    write_notes(root, NOTES)
    (root / "Password.md").write_bytes(content)
    model = SynonymModel()
    with vault_of(tmp_path, {}, model) as vault:
        assert vault.coverage().is_complete
        assert paths(vault, "credential") == ["Password.md"]
        assert len(model.texts) < 500 and max(map(len, model.texts)) < 1600


def test_notes_that_vanish_while_they_are_embedded(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    write_notes(root, {f"{number}.md": f"bread {number}\n" for number in range(40)})

    def remove() -> None:
        for number in range(20, 30):
            (root / f"{number}.md").unlink(missing_ok=True)
            (root / f"{number + 10}.md").write_text("another bill\n")

    with vault_of(tmp_path, {}, SynonymModel(before=remove)) as vault:
        assert not vault.coverage().is_complete
        assert len(paths(vault, "bread", SearchMode.TEXT, 100)) == 40, "the index has not looked again yet"
        vault.update()
        vault.embed()
        assert vault.coverage().is_complete
        assert len(paths(vault, "dough", limit=100)) == 20 and len(paths(vault, "cost", limit=100)) == 10


@pytest.mark.slow
def test_embedding_goes_on_after_kill_9(tmp_path: Path) -> None:
    """The process ends in the middle, with no chance to put anything in order."""
    write_notes(tmp_path / "notes", {f"{number}.md": f"bread {number}\n" for number in range(60)})
    code = f"""
from pathlib import Path
from tests.features.vault.test_semantic import SynonymModel, vault_of
import os, signal
model = SynonymModel(before=lambda: len(model.texts) >= 32 and os.kill(os.getpid(), signal.SIGKILL))
with vault_of(Path({str(tmp_path)!r}), {{}}, model):
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == -signal.SIGKILL
    model = SynonymModel()
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings(), lambda: model)
    try:
        assert vault.coverage().embedded == 32
        assert len(paths(vault, "bread", SearchMode.TEXT, 100)) == 60
        assert vault.embed().is_complete and len(model.texts) == 28
        assert len(paths(vault, "dough", limit=100)) == 60
    finally:
        vault.close()


def test_it_stops_between_pieces(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes", {f"{number}.md": f"bread {number}\n" for number in range(60)})
    model = SynonymModel()
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings(), lambda: model)
    seen: list[tuple[int, int]] = []
    try:
        vault.update()
        vault.embed(progress=lambda done, of: seen.append((done, of)), stop=lambda: len(model.texts) >= 32)
        assert seen == [(0, 60), (16, 60), (32, 60)]
        assert vault.embed(seconds=0).embedded == 32
    finally:
        vault.close()


def test_a_long_note_is_not_waited_for(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes", {"long.md": "A sentence about bread. " * 5_000})
    model = SynonymModel()
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings(), lambda: model)
    try:
        vault.update()
        assert vault.embed(stop=lambda: bool(model.texts)).embedded == 0
        assert len(model.texts) == 32, "it stops within the note, and keeps nothing of it"
        assert vault.embed().is_complete and paths(vault, "dough") == ["long.md"]
    finally:
        vault.close()


def test_several_threads_embed_each_note_once(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes", {f"{number}.md": f"bread {number}\n" for number in range(200)})
    model = SynonymModel()
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings(), lambda: model)
    threads = [threading.Thread(target=vault.embed) for _ in range(4)]
    try:
        vault.update()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(model.texts) == 200 and vault.coverage().is_complete
    finally:
        vault.close()


def test_a_search_answers_while_another_thread_embeds(tmp_path: Path) -> None:
    write_notes(tmp_path / "notes", {f"{number}.md": f"bread {number}\n" for number in range(64)})
    waiting, go = threading.Event(), threading.Event()

    def wait() -> None:
        if threading.current_thread() is thread:
            waiting.set()
            assert go.wait(20)

    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings(), lambda: SynonymModel(before=wait))
    thread = threading.Thread(target=vault.embed)
    try:
        vault.update()
        thread.start()
        assert waiting.wait(20)
        assert len(paths(vault, "bread", SearchMode.TEXT, 100)) == 64
        assert paths(vault, "dough") == []
        go.set()
        thread.join()
        assert len(paths(vault, "dough", limit=100)) == 64
    finally:
        go.set()
        vault.close()


def test_two_processes_embed_the_same_notes(tmp_path: Path) -> None:
    with vault_of(tmp_path) as first:
        second = Vault(first.root, tmp_path / "home", VaultSettings(), SynonymModel)
        try:
            first.write("new.md", "more bread\n")
            assert paths(first, "dough") == ["kitchen.md"]
            second.embed()
            assert sorted(paths(first, "dough")) == ["kitchen.md", "new.md"], (
                "what the other one embedded counts at once"
            )
        finally:
            second.close()


def test_has_embedding(tmp_path: Path) -> None:
    with vault_of(tmp_path) as vault:
        ids = {note.path: note.id for note in vault.notes()}
        assert vault.embedded(ids.values()) == set(ids.values())
        vault.write("prices.md", "else\n", overwrite=True)
        assert vault.embedded(ids.values()) == set(ids.values()) - {ids["prices.md"]}

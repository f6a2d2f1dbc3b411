"""Names that links and searches find: other forms of words, aliases, and names that no link could have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cru.features.vault import BadNotePath, VaultSettings
from cru.features.vault.search.forms import other_form
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault, find_vault

NOTES = {
    "Straße.md": "Die Haltestelle liegt an der Hauptstraße. Kilometer: ﬁnal.",
    "Tokyo.md": "# 東京タワー\n\n昨日、東京都庁を訪れた。Python入門も読んだ。",
    "Seoul.md": "---\naliases: [Capital of Korea, 서울]\ntags: [여행지]\n---\n학교에 갔다 ｶﾀｶﾅ\n",
    "Rates.md": "---\naliases: throttling, 429\n---\nA bucket for each key.\n",
    "Links.md": "[[Capital of Korea]] [[THROTTLING]] [[429]] [[strasse]]\n",
    "Long.md": "word " * 5_000 + "北海道の雪 " + "word " * 100,
}
FOUND = {
    "strasse": {"Straße.md", "Links.md"}, "STRASSE": {"Straße.md", "Links.md"}, "straße": {"Straße.md", "Links.md"},
    "hauptstrasse": {"Straße.md"},
    "haupt*": {"Straße.md"}, '"der hauptstraße"': {"Straße.md"}, "final": {"Straße.md"}, "title:strasse": {"Straße.md"},
    "東京": {"Tokyo.md"}, "都庁": {"Tokyo.md"}, "訪": {"Tokyo.md"}, "京東": set(), "入門": {"Tokyo.md"}, "python": {"Tokyo.md"},
    "heading:タワー": {"Tokyo.md"}, '"東京都庁を"': {"Tokyo.md"}, "東京 -都庁": set(), "学 OR 訪れ": {"Tokyo.md"}, "東京都*": {"Tokyo.md"},
    "학교": {"Seoul.md"}, "カタカナ": {"Seoul.md"}, "title:서울": {"Seoul.md"}, "title:capital": {"Seoul.md"}, "여행": {"Seoul.md"},
    "throttling": {"Rates.md", "Links.md"}, "title:429": {"Rates.md"}, "北海": {"Long.md"},
}  # fmt: skip


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    folder = tmp_path_factory.mktemp("names")
    (folder / "notes").mkdir()
    for path, text in NOTES.items():
        (folder / "notes" / path).write_text(text)
    vault = find_vault(VaultSettings(str(folder / "notes")), folder / "home")
    vault.update()
    yield vault
    vault.close()


def test_words_are_found_in_any_script_and_spelling(vault: Vault) -> None:
    assert {query: {hit.path for hit in vault.search(query)} for query in FOUND} == FOUND


def test_a_snippet_shows_the_place_in_any_script(vault: Vault) -> None:
    assert "\x02都庁\x03" in vault.search("都庁")[0].snippet
    assert "\x02北海\x03道の雪" in vault.search("北海")[0].snippet


@pytest.mark.parametrize(
    ("word", "form"),
    [("plain", ""), ("löwe", ""), ("Löwe", ""), ("Straße", "strasse"), ("ﬁn", "fin"), ("東京", "東 京"),
     ("a東b", "a 東 b"), ("Ｆｕｌｌ", "full")],
)  # fmt: skip
def test_a_word_has_another_form_only_if_the_tokenizer_needs_it(word: str, form: str) -> None:
    assert other_form(word) == form


def test_links_lead_to_aliases_as_long_as_nothing_else_has_the_name(vault: Vault) -> None:
    def targets() -> set[str]:
        return {note.path for note in vault.outlinks(vault.find("Links").id)}

    assert targets() == {"Seoul.md", "Rates.md", "Straße.md"}
    vault.write("429.md", "a note of that name")
    assert targets() == {"Seoul.md", "Rates.md", "Straße.md", "429.md"}
    rates = (vault.root / "Rates.md").read_text()
    vault.write("Rates.md", rates.replace("throttling", "limits"), overwrite=True)
    assert targets() == {"Seoul.md", "Straße.md", "429.md"}
    vault.write("Rates.md", rates, overwrite=True)
    assert targets() == {"Seoul.md", "Rates.md", "Straße.md", "429.md"}
    vault.rename("Rates.md", "sub/Limits.md")
    assert targets() == {"Seoul.md", "sub/Limits.md", "Straße.md", "429.md"}
    assert (vault.root / "Links.md").read_text() == NOTES["Links.md"]


@pytest.mark.parametrize("name", ["a#b", "a|b", "a^b", "a[b", "a]b", "fold#er/a", "[x] y.md"])
def test_no_note_gets_a_name_that_no_link_can_have(vault: Vault, name: str) -> None:
    for act in (lambda: vault.rename("Tokyo.md", name), lambda: vault.write(name, "text")):
        with pytest.raises(BadNotePath, match="no link can lead") as caught:
            act()
        assert "# | ^ [ ]" in caught.value.hint
    assert (vault.root / "Tokyo.md").read_text() == NOTES["Tokyo.md"]


def test_a_note_that_has_such_a_name_can_be_written_and_renamed(vault: Vault, tmp_path: Path) -> None:
    (vault.root / "old [1].md").write_text("x")
    vault.update()
    assert vault.write("old [1].md", "y", overwrite=True) == "old [1].md"
    assert vault.rename("old [1].md", "old 1").new == "old 1.md"


def test_notes_with_some_words_are_found_if_none_has_all(vault: Vault) -> None:
    def found(text: str) -> tuple[set[str], str]:
        result = vault.search_notes(text, mode=SearchMode.TEXT)
        return {hit.path for hit in result.hits}, result.notice

    some = "no note has all of these words; these have some"
    assert found("how does the bucket reach 東京") == ({"sub/Limits.md", "Tokyo.md"}, some)
    assert found("a bucket for each key") == ({"sub/Limits.md"}, "")
    assert found("bucket 東京 -python") == ({"sub/Limits.md"}, some)
    assert (
        found('"bucket key" 東京')
        == found("title:bucket 東京")
        == found("nothing-like-it")
        == found("how is it")
        == (set(), "")
    )
    assert found("path:Tok bucket 東京") == ({"Tokyo.md"}, some)
    assert vault.search("bucket 東京") == []

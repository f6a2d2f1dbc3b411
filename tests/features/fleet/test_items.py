"""The file of a batch: what a line may be, and what is said of lines that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from cru.features.fleet import BadItems
from cru.features.fleet.items import LARGEST, ItemDefaults, ItemFile, batch_name, read_items
from cru.features.fleet.records import BatchItem


def read(text: str | bytes, **options: object) -> ItemFile:
    data = text if isinstance(text, bytes) else text.encode()
    defaults = ItemDefaults("batch", Path("/here"), BatchItem("", **options))  # type: ignore[arg-type]
    return read_items(data, defaults)


def problems(text: str | bytes) -> list[tuple[int, str]]:
    return [(problem.line, problem.text) for problem in read(text).problems]


def test_an_item_gets_what_it_leaves_out() -> None:
    file = read(
        '{"prompt": "a", "cwd": "sub", "attach": ["x.txt"]}\n{"prompt": "b", "id": "2", "model": "own"}\n',
        model="m",
        seconds=9.0,
    )
    (line, first), (_, second) = file.items
    assert (line, first.cwd, first.attach, first.model, first.seconds) == (
        1,
        "/here/sub",
        ("/here/sub/x.txt",),
        "m",
        9.0,
    )
    assert first.context == f"batch-{first.id}" and len(first.id) == 8
    assert (second.id, second.context, second.model) == ("2", "batch-2", "own")


def test_plain_lines_are_prompts() -> None:
    assert [(line, item.prompt) for line, item in read("one\n\n  two  \n").items] == [(1, "one"), (3, "two")]


def test_ids_stay_when_other_lines_come_and_go_and_copies_are_told_apart() -> None:
    ids = [item.id for _, item in read("one\ntwo\none\n").items]
    assert ids[2] == f"{ids[0]}-2" and len(set(ids)) == 3
    assert [item.id for _, item in read("new\ntwo\none\n").items][1:] == [ids[1], ids[0]]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"prompt": "a"', "not JSON"),
        ('{"prompt": 3}', "Expected `str`, got `int` - at `$.prompt`"),
        ('{"promt": "a"}', "there is no field `promt` (did you mean `prompt`?)"),
        ('{"prompt": "a", "colour": 1}', "there is no field `colour`; there are prompt, id,"),
        ('{"id": "a"}', "missing required field `prompt`"),
        ('{"prompt": " "}', "the prompt is empty"),
        ('{"prompt": "a\\u0000"}', "NUL"),
        ('{"prompt": "a", "id": "../x"}', "`id` has letters"),
        ('{"prompt": "a", "context": "a/b"}', "no context may be called 'a/b'"),
        ('{"prompt": "a", "seconds": -1}', "0 or more"),
        ('{"prompt": "a", "seconds": 1e300}', "no more than 1000000000 seconds"),
        ('{"prompt": "a", "on_interrupted": "maybe"}', "Invalid enum value 'maybe'"),
        ("[1]", "Expected `object`, got `array`"),
        ('{"prompt": ' + "[" * 5000, "Expected `str`, got `array`"),
    ],
)
def test_what_is_no_item_is_named_with_its_line(line: str, text: str) -> None:
    [(number, problem)] = problems('{"prompt": "good"}\n' + line + "\n")
    assert number == 2 and text in problem, problem


def test_a_file_of_windows_is_read_as_what_it_is() -> None:
    [(_, item)] = read(b'\xef\xbb\xbf{"prompt": "a", "id": "x"}\r\n').items
    assert (item.prompt, item.id) == ("a", "x")


def test_a_json_list_is_no_batch_of_brackets() -> None:
    [(line, text)] = problems('[\n  {"prompt": "a"}\n]\n')
    assert line == 1 and "jq -c '.[]'" in text
    assert [item.prompt for _, item in read("[x] is a prompt\n").items] == ["[x] is a prompt"]


def test_bytes_that_are_no_utf8_are_named() -> None:
    assert [line for line, _ in problems(b"good\nb\xffd\n")] == [2]
    assert "UTF-8" in problems(b"good\nb\xffd\n")[0][1]


def test_an_id_that_is_there_twice_names_the_other_line() -> None:
    assert problems('{"prompt": "a", "id": "x"}\n\n{"prompt": "b", "id": "x"}\n') == [
        (3, "the id x is that of line 1, too")
    ]


def test_ten_megabytes_are_an_item_and_more_than_the_limit_is_none() -> None:
    assert len(read("x" * (10 << 20)).items) == 1
    assert "more than 16 MiB" in problems("x" * (LARGEST + 1))[0][1]


def test_problems_are_told_together_the_first_twenty() -> None:
    file = read("{}\n" * 24)
    with pytest.raises(BadItems, match=r"p\.jsonl:1: .*\n(.*\n){19}… and 4 more"):
        file.require_good("p.jsonl")


def test_the_name_of_a_batch_is_that_of_its_file_and_place(tmp_path: Path) -> None:
    assert batch_name(tmp_path / "my prompts.jsonl").startswith("my-prompts-")
    assert batch_name(tmp_path / "a.jsonl") != batch_name(tmp_path / "b" / "a.jsonl")

from __future__ import annotations

import pytest

from cru.models.sse import SseDecoder

TEXT = (
    'data: {"a": "héllo 🐍"}\n\n: keep-alive\n\nevent: x\nid: 7\ndata:two\n\ndata: one\ndata: more\n\ndata: [DONE]\n\n'
)
EVENTS = ['{"a": "héllo 🐍"}'.encode(), b"two", b"one\nmore", b"[DONE]"]


def decode(*chunks: bytes) -> list[bytes]:
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return events + decoder.end()


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_however_the_bytes_are_cut(line_end: str) -> None:
    body = TEXT.replace("\n", line_end).encode()
    assert decode(body) == EVENTS
    for cut in range(len(body) + 1):
        assert decode(body[:cut], body[cut:]) == EVENTS, cut
    assert decode(*(body[i : i + 1] for i in range(len(body)))) == EVENTS


def test_an_event_without_the_last_blank_line_counts() -> None:
    assert decode(b"data: a\n\ndata: b") == [b"a", b"b"]
    assert decode(b"data: a\n\ndata: b\r") == [b"a", b"b"]


def test_a_byte_order_mark_is_dropped_even_when_cut() -> None:
    assert decode(b"\xef\xbb\xbfdata: a\n\n") == [b"a"]
    assert decode(b"\xef", b"\xbb", b"\xbfdata: a\n\n") == [b"a"]


def test_only_one_blank_after_the_colon_is_dropped_and_empty_data_is_an_event() -> None:
    assert decode(b"data:  a\n\n") == [b" a"]
    assert decode(b"data\n\n") == [b""]


def test_comments_and_other_fields_alone_are_no_event() -> None:
    assert decode(b": OPENROUTER PROCESSING\n\nevent: ping\n\nretry: 10\n\n") == []

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.kit.growth import assert_linear

from cru.core.models import exchange
from cru.core.models.exchange import SseDecoder
from cru.core.models.failures import MOST_EVENT_BYTES
from cru.core.models.protocol import BrokenReply

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


@pytest.mark.slow
def test_a_line_in_many_pieces_takes_time_in_proportion_to_its_length() -> None:
    lengths: list[int] = []

    def work(pieces: int) -> Callable[[], object]:
        return lambda: lengths.extend(len(event) for event in feed(pieces))

    def feed(pieces: int) -> list[bytes]:
        decoder, piece = SseDecoder(), b"x" * 64
        decoder.feed(b"data: ")
        for _ in range(pieces):
            decoder.feed(piece)
        return decoder.feed(b"\n\n")

    assert_linear(work, 1 << 16)  # 4 MiB; joined anew with each piece it would be 137 GB
    assert max(lengths) == 4 << 20


def test_a_line_without_end_is_a_broken_reply_that_names_the_limit() -> None:
    decoder, piece = SseDecoder(), b"x" * (8 << 20)
    with pytest.raises(BrokenReply, match="a line of more than 32 MiB") as caught:
        for _ in range(5):
            decoder.feed(piece)
    assert not caught.value.retryable
    with pytest.raises(BrokenReply, match="32 MiB"):
        SseDecoder().feed(b"data: " + b"x" * (33 << 20) + b"\n\n")


def test_an_event_without_end_is_a_broken_reply_that_names_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_EVENT_BYTES == 256 << 20
    monkeypatch.setattr(exchange, "MOST_EVENT_BYTES", 4 << 20)
    decoder = SseDecoder()
    line = b"data: " + b"x" * (1 << 20) + b"\n"
    with pytest.raises(BrokenReply, match="an event of more than 4 MiB"):
        for _ in range(4):
            assert decoder.feed(line) == []


def test_keep_alives_without_blank_lines_are_no_long_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "MOST_EVENT_BYTES", 1 << 20)
    decoder = SseDecoder()
    for _ in range(9):
        assert decoder.feed(b": keep-alive\n" * (1 << 14)) == []
    assert decoder.feed(b"data: a\n\n") == [b"a"]


def test_a_line_in_many_pieces_is_copied_a_few_times_not_once_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []

    def copy(data: bytearray) -> bytes:
        copied.append(len(data))
        return b"".join((data,))

    monkeypatch.setattr(exchange, "bytes", copy, raising=False)
    decoder = SseDecoder()
    for piece in (b"data: ", *[b"x" * 64] * 5000, b"\n", b"\n"):
        events = decoder.feed(piece)
    assert events == [b"x" * 320_000]
    assert sum(copied) < 2 * 320_100

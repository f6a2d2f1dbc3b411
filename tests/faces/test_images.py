"""Images: given with a prompt, read by a tool, kept beside the log, and sent as each kind of server takes them."""

from __future__ import annotations

import base64
import hashlib
import stat
import struct
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Call, HomeDir, Reply, cru, server

from cru.core.base.values.image_formats import ImageFormat, identify
from cru.core.base.values.messages import Entry
from cru.core.conversations.images import BadImage, check_image, keep_image, load_image
from cru.core.turn.attachments import read_named_images
from cru.core.turn.images import copy_images_of
from cru.core.turn.unfinished import find_unfinished


def png(width: int = 64, height: int = 48, shade: int = 0) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes([shade]) * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


PNG = png()
DIGEST = hashlib.sha256(PNG).hexdigest()
DATA = base64.b64encode(PNG).decode()
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
TEXT = f"what is it?\n\n[image a.png, 64x48 png, {-(-len(PNG) // 1000)} kB]"


@pytest.fixture
def picture(home: HomeDir) -> Path:
    path = home.project / "a.png"
    path.write_bytes(PNG)
    return path


def kept(home: HomeDir) -> list[str]:
    return sorted(path.name for path in (home.context() / "images").iterdir())


def ask(home: HomeDir, *argv: str) -> Any:
    run = cru(*argv, home=home)
    assert run.code == 0, run.err
    return run


def test_a_prompt_with_an_image_is_sent_kept_and_sent_again(home: HomeDir, picture: Path) -> None:
    with server([Reply("a grey box"), Reply("yes")]) as model:
        home.configure(url=model.url)
        ask(home, "--attach", "a.png", "what is it?")
        picture.unlink()  # the context has it
        ask(home, "sure?")
        first, second = (request.body["messages"] for request in model.requests)
    assert first[-1] == {"role": "user", "content": [CHAT_IMAGE, {"type": "text", "text": TEXT}]}
    assert second[: len(first)] == first
    place = home.context() / "images" / DIGEST
    assert place.read_bytes() == PNG and stat.S_IMODE(place.stat().st_mode) == 0o600
    prompt = next(entry for entry in home.log() if entry["content"] == "what is it?")
    about = {"digest": DIGEST, "media_type": "image/png", "name": "a.png", "size": len(PNG), "width": 64, "height": 48}
    assert prompt["metadata"]["images"] == [{**about, "path": str(picture)}]
    assert DATA[:40] not in (home.context() / "context.jsonl").read_text()


NAMED = [
    ("look at @a.png", ["a.png"]),
    ("@a.png", ["a.png"]),
    ("@a.png, then @below/B.PNG.", ["a.png", "B.PNG"]),
    ('@"with blank.png"?', ["with blank.png"]),
    ("@a.png and @./a.png", ["a.png"]),
    ("@root.png", ["root.png"]),
    ("mail me@a.png", []),
    ("@missing.png", []),
    ("@a.png.txt", []),
    ("@text.png", []),
    (f"@{'x' * 300}.png", []),
    ("a.png", []),
]


@pytest.mark.parametrize(("text", "names"), NAMED)
def test_images_that_a_prompt_names_are_found(tmp_path: Path, text: str, names: list[str]) -> None:
    cwd = tmp_path / "cwd"
    (cwd / "below").mkdir(parents=True)
    for shade, name in enumerate(("cwd/a.png", "cwd/below/B.PNG", "cwd/with blank.png", "root.png", "a.png")):
        (tmp_path / name).write_bytes(png(shade=shade))
    (cwd / "text.png").write_text("no image")
    read = read_named_images(text, (cwd, tmp_path))
    assert [attachment.image.name for attachment in read if attachment.image] == names
    assert all(str(cwd) in attachment.path or "root" in attachment.path for attachment in read)


@pytest.mark.sample(2)
@pytest.mark.parametrize("road", ["words", "piped", "json-config", "batch", "attached too"])
def test_an_image_that_a_prompt_names_goes_along_on_every_road(home: HomeDir, picture: Path, road: str) -> None:
    prompt = "look at @a.png"
    with server([Reply("grey")]) as model:
        home.configure(url=model.url)
        if road == "words":
            ask(home, prompt)
        elif road == "attached too":
            ask(home, "--attach", "a.png", prompt)
        elif road == "piped":
            assert cru(home=home, input=prompt).code == 0
        elif road == "json-config":
            request = {"command": {"send_prompt": {"prompt": prompt}}}
            assert cru("--json-config", home=home, input=msgspec.json.encode(request).decode()).code == 0
        else:
            (home.project / "items.jsonl").write_bytes(msgspec.json.encode({"id": "one", "prompt": prompt}) + b"\n")
            ask(home, "batch", "items.jsonl")
    content = model.requests[0].body["messages"][-1]["content"]
    assert [part for part in content if part["type"] == "image_url"] == [CHAT_IMAGE]


def test_material_beside_the_words_names_no_image(home: HomeDir, picture: Path) -> None:
    with server([Reply("yes")]) as model:
        home.configure(url=model.url)
        assert cru("sum it up", home=home, input="see @a.png").code == 0
    assert model.requests[0].body["messages"][-1]["content"] == "sum it up\n\nsee @a.png"


def test_anthropic_gets_blocks_and_images_of_results(home: HomeDir, picture: Path) -> None:
    read = Call("read", {"file_path": "a.png"})
    with server([Reply("look", calls=[read]), Reply("both grey")]) as model:
        home.configure(
            'model = "anthropic_compatible:claude-sonnet-4-5"\napi_key = "k"',
            url=model.url.removesuffix("/v1") + "/v1/messages",
        )
        ask(home, "--attach", "a.png", "what is it?")
        asked, after = (request.body["messages"] for request in model.requests)
    assert asked[0]["content"] == [BLOCK, {"type": "text", "text": TEXT}]
    result = after[-1]["content"][0]
    assert result["type"] == "tool_result" and result["content"][0] == BLOCK
    assert result["content"][1]["text"].startswith("[image a.png, 64x48 png")
    assert kept(home) == [DIGEST]


def test_images_of_results_follow_the_last_of_a_row_for_chat_servers(home: HomeDir, picture: Path) -> None:
    calls = [Call("read", {"file_path": "a.png"}), Call("ls", {})]
    with server([Reply("look", calls=calls), Reply("more", calls=[Call("ls", {})]), Reply("done")]) as model:
        home.configure(url=model.url)
        ask(home, "go")
        second, third = (request.body["messages"] for request in model.requests[1:])
    assert [message["role"] for message in second[-4:]] == ["assistant", "tool", "tool", "user"]
    assert second[-1]["content"][1] == CHAT_IMAGE
    assert third[: len(second)] == second


def test_a_model_that_takes_none_is_told_of_before_anything_is_logged(home: HomeDir, picture: Path) -> None:
    with server([Reply("hi"), Reply("grey"), Reply("no idea")]) as model:
        home.configure(
            '[models."gpt-3.5-turbo"]\nimages = true\n[models.blind]\nmodel = "gpt-3.5-turbo-16k"', url=model.url
        )
        run = cru("--model", "blind", "--attach", "a.png", "what is it?", home=home)
        assert run.code == 2 and "takes no images, so" in run.err and "images = true" in run.err, run.err
        assert not model.requests and not (home.context() / "context.jsonl").exists()
        ask(home, "--model", "gpt-3.5-turbo", "--attach", "a.png", "what is it?")
        later = ask(home, "--model", "blind", "sure?")
        messages = model.requests[-1].body["messages"]
    assert "takes no images: it reads their names" in later.err
    assert f"{TEXT}\n[image a.png, not shown to this model]" in [message["content"] for message in messages]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("b.png", PNG + b"\0" * 4_000_000, "an image may have 3.75 MiB"),
        ("c.png", png(9000, 1), "8000 pixels a side, this one has 9000x1"),
        (
            "d.heic",
            b"\0\0\0\x20ftypheic\xff\xff\xff\xff",
            "neither UTF-8 text nor an image that models take (HEIC or AVIF)",
        ),
        ("e.png", b"\x89PNG\xff", "it is none of the images that models take"),
    ],
)
def test_what_cannot_be_sent_says_why(home: HomeDir, name: str, data: bytes, words: str) -> None:
    (home.project / name).write_bytes(data)
    run = cru("--attach", name, "what is it?", home=home)
    assert run.code == 2 and f"cannot attach {name}: " in run.err and words in run.err, run.err


def test_a_missing_and_a_damaged_image_are_told_and_named_instead(home: HomeDir, picture: Path) -> None:
    (home.project / "b.png").write_bytes(png(shade=9))
    other = hashlib.sha256(png(shade=9)).hexdigest()
    with server([Reply("grey"), Reply("hm")]) as model:
        home.configure(url=model.url)
        ask(home, "--attach", "a.png", "--attach", "b.png", "what is it?")
        (home.context() / "images" / DIGEST).unlink()
        (home.context() / "images" / other).write_bytes(b"x")
        run = ask(home, "sure?")
        message = next(m for m in model.requests[-1].body["messages"] if "what is it?" in m["content"])
    assert run.err.count("the image a.png is not sent: its file is gone") == 1
    assert run.err.count("the image b.png is not sent: its file is damaged") == 1
    assert message["content"].endswith("[image a.png: it is not kept any more]\n[image b.png: it is not kept any more]")


def test_a_hook_sees_what_an_image_is_and_may_drop_it(home: HomeDir, picture: Path) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    (home.cru / "plugins" / "strict.lua").write_text(
        'cru.on("message:received", function(_, event)\n'
        "  local image = event.attachments[1].image\n"
        '  cru.log("warn", image.media_type .. " " .. image.width .. " " .. event.attachments[1].text .. "|")\n'
        "  return {attachments = cru.json.array({})}\n"
        "end)\n"
    )
    with server([Reply("nothing there")]) as model:
        home.configure(url=model.url)
        run = ask(home, "--attach", "a.png", "what is it?")
        assert model.requests[0].body["messages"][-1] == {"role": "user", "content": "what is it?"}, run.err
    assert "image/png 64 |" in run.err, run.err


def test_a_trace_gives_the_very_bytes_and_a_renamed_context_its_images(home: HomeDir, picture: Path) -> None:
    with server([Reply("grey"), Reply("yes")]) as model:
        home.configure(url=model.url)
        ask(home, "-C", "one", "--attach", "a.png", "what is it?")
        ask(home, "--rename-context", "one", "two")
        ask(home, "-C", "two", "sure?")
        sent = [request.raw for request in model.requests]
    assert DATA.encode() in sent[1]
    shown = cru("-C", "two", "trace", "1", "--request", "1", home=home)
    assert "(as sent)" in shown.out.splitlines()[0] and DATA in shown.out, shown.err


def test_a_prompt_that_was_cut_off_is_resumed_with_its_image(home: HomeDir, picture: Path) -> None:
    from tests.kit import Status

    with server([Status(400), Reply("grey")]) as model:
        home.configure(url=model.url)
        assert cru("--attach", "a.png", "what is it?", home=home).code != 0
        picture.unlink()
        ask(home, "--resume")
        assert model.requests[1].body["messages"][-1]["content"][0] == CHAT_IMAGE


def test_a_copy_of_a_conversation_has_its_images(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    image = check_image(PNG, "a.png")
    keep_image(source, PNG, image)
    gone = msgspec.structs.replace(image, digest="0" * 64)
    metadata = {"images": [msgspec.to_builtins(image), msgspec.to_builtins(gone)]}
    copy_images_of([Entry("e", 0, entry_type="tool_result", metadata=metadata)], source, target)
    assert [path.name for path in (target / "images").iterdir()] == [DIGEST]
    with pytest.raises(BadImage):
        load_image(source, msgspec.structs.replace(image, digest="../../../etc/passwd"))


def test_a_prompt_that_nobody_resolved_has_its_images_from_the_context(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("words")
    image = check_image(PNG, "a.png")
    about = {**msgspec.to_builtins(image), "path": "/gone/a.png"}
    metadata = {"source": "user", "attachments": ["/gone/a.png", str(tmp_path / "b.txt")], "images": [about]}
    prompt = find_unfinished([Entry("e", 0, content="go", role="user", metadata=metadata)], tmp_path)
    assert prompt is not None
    assert [(file.text, file.image) for file in prompt.attachments] == [("", image), ("words", None)]


@pytest.mark.parametrize(
    ("begin", "media_type"),
    [
        ("474946383961 2c01 1100", "image/gif"),
        ("ffd8ffe10004 0000 ffc2 0011 08 0011 012c 03", "image/jpeg"),
        ("5249464644000000574542505650382038000000b004009d012a2c0111003fcde6f0733fb8332ca0", "image/webp"),
        ("5249464620000000574542505650384c140000002f2b010400071011fd0f0009e1ff7c29a2ff2921", "image/webp"),
        ("524946467800000057454250565038580a000000180000002b0100100000414c50480f0000000107", "image/webp"),
    ],
)
def test_the_size_of_an_image_is_read_from_its_beginning(begin: str, media_type: str) -> None:
    assert identify(bytes.fromhex(begin)) == ImageFormat(media_type, 300, 17)
    for end in range(len(bytes.fromhex(begin))):
        identify(bytes.fromhex(begin)[:end])  # torn anywhere, it raises nothing

from __future__ import annotations

import asyncio
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.core.models.harness import LS, calls_of, text_of

from cru.core.base.values.messages import CallPart, Delta, End, Message, Request, Span, ToolSpec
from cru.core.models.protocol import ContextTooLong, ModelUnavailable, NoModel
from cru.core.models.pull import weights_path
from cru.core.models.tool_schema import LONGEST_STRING, call_schema, parse_call

FOLDER = Path(os.environ.get("CRU_TEST_MODELS", Path.home() / ".cru" / "models"))
library = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed (extra `local`)")
weights = pytest.mark.skipif(
    not weights_path("smollm2", FOLDER).exists(),
    reason="SmolLM2 is not there: cru models pull smollm2, or CRU_TEST_MODELS",
)
PLACES = ToolSpec(
    "ls", "List files", {"type": "object", "properties": {"path": {"enum": ["docs", "src"]}}, "required": ["path"]}
)


def test_a_choice_of_tools_is_a_schema_whose_strings_end() -> None:
    choices: Any = call_schema((LS, PLACES))["anyOf"]
    ls, places = choices
    assert ls["properties"]["name"] == {"const": "ls"}
    assert ls["properties"]["arguments"]["properties"]["path"] == {"type": "string", "maxLength": LONGEST_STRING}
    assert places["properties"]["arguments"]["properties"]["path"] == {"enum": ["docs", "src"]}
    assert "maxLength" not in json.dumps(LS.parameters), "the tool itself was changed"


def test_a_reply_under_the_schema_is_a_call_and_a_torn_one_is_none() -> None:
    assert parse_call('{"name": "ls",\n "arguments": {"path": "docs"}}', 0, "i") == CallPart(
        0, "i", "ls", '{"path":"docs"}'
    )
    assert parse_call('{"name": "ls", "argum', 0, "i") is None


@pytest.mark.skipif(find_spec("xllamacpp") is not None, reason="xllamacpp is installed")
def test_without_the_library_the_extra_is_named(tmp_path: Path) -> None:
    from cru.core.models.embedded import EmbeddedModel

    with pytest.raises(NoModel) as caught:
        EmbeddedModel("m", tmp_path / "m.gguf", None, say=print)
    assert "pip install xllamacpp" in str(caught.value)


@library
def test_the_body_forces_a_call_except_after_a_result() -> None:
    from cru.core.models.embedded import SYSTEM_CHARACTERS, EmbeddedModel

    said: list[str] = []
    model = EmbeddedModel("m", Path("/nonexistent.gguf"), None, say=said.append)
    asked, result = Message("user", "list"), Message("tool", "a.md", call_id="c")

    def body(*messages: Message, tool_choice: str = "auto") -> bytes:
        system = (Span("s", "o", "x" * 5000),)
        parameters = {"tool_choice": tool_choice, "logit_bias": 1}
        return model.encode(Request("m", system, messages, (PLACES,), parameters)).join()

    first = body(asked)
    assert json.loads(first)["response_format"]["type"] == "json_schema"
    assert len(json.loads(first)["messages"][0]["content"]) == SYSTEM_CHARACTERS
    assert "response_format" not in json.loads(body(asked, result))
    assert "response_format" not in json.loads(body(asked, tool_choice="none"))
    assert "response_format" in json.loads(body(asked, result, tool_choice="required"))
    assert body(asked, result).startswith(first[: first.index(b'"list"}') + 7])
    assert sorted(said) == [
        "local does not take the parameter `logit_bias`; it is left out",
        "local: the system prompt is cut to 800 characters for m",
    ]


@library
def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    from cru.core.models.embedded import EmbeddedModel

    (tmp_path / "m.gguf").write_bytes(b"nonsense")
    model = EmbeddedModel("m", tmp_path / "m.gguf", None, say=print)

    async def main() -> None:
        async for _ in model.stream(model.encode(Request("m", messages=(Message("user", "x"),)))):
            pass

    with pytest.raises(ModelUnavailable, match="cannot load"):
        asyncio.run(main())


@library
@weights
def test_the_small_model_talks_calls_a_tool_and_can_be_stopped() -> None:
    from cru.core.models.embedded import EmbeddedModel

    async def main() -> None:
        model = EmbeddedModel("smollm2", weights_path("smollm2", FOLDER), None, say=print)

        async def ask(*messages: Message, tools: tuple[ToolSpec, ...] = (), **parameters: object) -> list[Delta]:
            request = Request("", messages=messages, tools=tools, parameters=parameters)
            return [delta async for delta in model.stream(model.encode(request))]

        said = await ask(Message("user", "What is the capital of France?"), max_tokens=8)
        assert text_of(said)
        assert isinstance(said[-1], End)
        assert said[-1].usage.output > 0
        (call,) = calls_of(await ask(Message("user", "List the files in docs"), tools=(PLACES,), temperature=0))
        assert call.name == "ls"
        assert json.loads(call.arguments)["path"] in ("docs", "src")
        await model.close()

    asyncio.run(main())


@library
@weights
def test_the_small_model_can_be_stopped_and_says_when_a_prompt_is_too_long() -> None:
    from cru.core.models.embedded import EmbeddedModel

    async def main() -> None:
        model = EmbeddedModel("smollm2", weights_path("smollm2", FOLDER), None, say=print)

        async def ask(text: str) -> None:
            async for _ in model.stream(model.encode(Request("", messages=(Message("user", text),)))):
                pass

        endless = asyncio.create_task(ask("Count to one thousand"))
        await asyncio.sleep(0.2)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        with pytest.raises(ContextTooLong):
            await ask("x " * 9000)
        await model.close()

    asyncio.run(main())

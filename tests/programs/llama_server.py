"""llama.cpp's server with a model that always says the same: `python llama_server.py TEMPLATE.jinja PIECES.json WINDOW [KEY]`. It prints
its address and runs until its standard input ends. `bench/install_peers.sh llama` installs the Python that runs it.

The model has a token for each piece of its text. The weights lead from every other token to the first piece, from each piece to the next
one, and from the last one to the end of the reply, or back to the first one where the list ends with null."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

TRAINED = 4096
INNER = HEADS = 1
"""Of parts that only add zero."""
BOS, EOS, MERGED = "<|bos|>", "<|eos|>", "hi"


def vocabulary() -> list[str]:
    """Return the characters that stand for bytes in GPT-2's vocabulary, two control tokens, and the token of the only merge."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (chr(0x100 + number) for number in range(256 - len(plain)))
    characters = {byte: chr(byte) for byte in plain}
    known = [characters[byte] if byte in characters else next(others) for byte in range(256)]
    return [*known, BOS, EOS, MERGED]


def write_weights(path: Path, template: str, pieces: list[str | None]) -> None:
    plain = vocabulary()
    texts = [piece for piece in pieces if piece is not None]
    tokens = plain + texts
    size = len(tokens) + len(tokens) % 2
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(TRAINED)
    writer.add_embedding_length(size)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(size // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    kinds = {
        BOS: gguf.TokenType.CONTROL,
        EOS: gguf.TokenType.CONTROL,
        **dict.fromkeys(texts, gguf.TokenType.USER_DEFINED),
    }
    writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token in tokens])
    writer.add_token_merges([" ".join(MERGED)])
    writer.add_bos_token_id(tokens.index(BOS))
    writer.add_eos_token_id(tokens.index(EOS))
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)
    last = len(plain) if pieces[-1] is None else tokens.index(EOS)
    followers = [len(plain)] * len(plain) + [*range(len(plain) + 1, len(tokens)), last]
    add_tensors(writer, size, followers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tensors(writer: gguf.GGUFWriter, size: int, followers: list[int]) -> None:
    """Add weights by which `followers` holds the next token of each token: attention and the inner layer add nothing."""
    count = len(followers)
    output = np.zeros((count, size), np.float32)
    output[followers, range(count)] = 1.0
    writer.add_tensor("token_embd.weight", np.eye(count, size, dtype=np.float32))
    writer.add_tensor("output.weight", output)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(size, np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((size, size), np.float32))
    for name, shape in {"ffn_gate": (INNER, size), "ffn_up": (INNER, size), "ffn_down": (size, INNER)}.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros(shape, np.float32))


def serve(path: Path, window: int, keys: list[str]) -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = window
    parameters.n_parallel = 1
    parameters.verbosity = 0
    parameters.warmup = False
    parameters.api_keys = keys
    parameters.use_jinja = True
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    template, script, window, *keys = sys.argv[1:]
    weights = Path("weights.gguf")
    write_weights(weights, Path(template).read_text(), json.loads(Path(script).read_text()))
    serve(weights, int(window), keys)

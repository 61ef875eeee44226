"""GPT-2 in llama.cpp, for tools/bench/generation. Needs numpy, safetensors, gguf and llama-cpp-python.

  llama_peer.py weights CONFIG FILE         writes random weights, with a fixed seed, as safetensors
  llama_peer.py gguf CONFIG FILE GGUF TYPE  writes these weights as GGUF, with matrices of TYPE: f32, f16 or q8_0
  llama_peer.py run CONFIG GGUF THREADS     for each input line with a JSON object {"prompt": [...], "tokens": N}, prints
                                            the N tokens with the best scores, and the seconds of both parts
  llama_peer.py scores CONFIG FILE          for the input line {"tokens": [...], "next": [...]}, prints the token with the
                                            best score in double precision, and the scores of the tokens `next`

CONFIG is a JSON object with layers, width, heads, length and words. The caches of keys and values are f32, as in
Sluice."""

import ctypes
import json
import sys
import time

import numpy as np

POSITIONS = 1024
# The names of transformers and of GGUF; None: not in a layer.
LAYER = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up",
         "mlp.c_proj": "ffn_down"}


def shapes(config):
    """The parameters by their names in transformers. Matrices of layers are [in, out]."""
    width = config["width"]
    outputs = {"attn.c_attn": 3 * width, "attn.c_proj": width, "mlp.c_fc": 4 * width, "mlp.c_proj": width}
    found = {"wte.weight": (config["words"], width), "wpe.weight": (POSITIONS, width)}
    for layer in range(config["layers"]):
        for name in LAYER:
            inputs = 4 * width if name == "mlp.c_proj" else width
            out = outputs.get(name, width)
            found[f"h.{layer}.{name}.weight"] = (inputs, out) if name in outputs else (width,)
            found[f"h.{layer}.{name}.bias"] = (out,)
    return found | {"ln_f.weight": (width,), "ln_f.bias": (width,)}


def write_weights(config, path):
    from safetensors.numpy import save_file

    random = np.random.default_rng(1)
    tensors = {}
    for name, shape in shapes(config).items():
        drawn = random.standard_normal(shape, dtype=np.float32) * np.float32(0.02 if name == "wte.weight" else 0.1)
        tensors[name] = drawn + 1 if ".ln_" in f".{name}" and name.endswith(".weight") else drawn
    save_file(tensors, path)


def name_in_gguf(name):
    names = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight", "ln_f.weight": "output_norm.weight",
             "ln_f.bias": "output_norm.bias"}
    if name in names:
        return names[name]
    _, layer, rest = name.split(".", 2)
    module, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{LAYER[module]}.{kind}"


def write_gguf(config, weights, path, dtype):
    import gguf
    from safetensors.numpy import load_file

    types = {"f32": gguf.GGMLQuantizationType.F32, "f16": gguf.GGMLQuantizationType.F16, "q8_0": gguf.GGMLQuantizationType.Q8_0}
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(POSITIONS)
    writer.add_embedding_length(config["width"])
    writer.add_feed_forward_length(4 * config["width"])
    writer.add_block_count(config["layers"])
    writer.add_head_count(config["heads"])
    writer.add_layer_norm_eps(1e-5)
    writer.add_vocab_size(config["words"])
    writer.add_tokenizer_model("none")
    for name, tensor in load_file(weights).items():
        if tensor.ndim == 2 and not name.startswith("w"):
            tensor = np.ascontiguousarray(tensor.T)  # GGUF stores [out, in]
        isMatrix = tensor.ndim == 2 and name != "wpe.weight"
        stored = types[dtype] if isMatrix else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name_in_gguf(name), gguf.quants.quantize(tensor, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Model:
    def __init__(self, config, path, threads):
        import llama_cpp

        self.llama, self.words = llama_cpp, config["words"]
        self.log = llama_cpp.llama_log_callback(lambda *_: None)  # kept, because llama.cpp keeps its address
        llama_cpp.llama_log_set(self.log, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_threads, settings.n_threads_batch = config["length"], threads, threads
        settings.n_batch = settings.n_ubatch = 512
        settings.type_k = settings.type_v = llama_cpp.GGML_TYPE_F32
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        if not self.context:
            sys.exit(f"llama.cpp cannot load {path}")

    def read(self, tokens):
        """The number of the best next token."""
        array = (self.llama.llama_token * len(tokens))(*tokens)
        if self.llama.llama_decode(self.context, self.llama.llama_batch_get_one(array, len(tokens))):
            sys.exit("llama.cpp cannot decode")
        scores = np.ctypeslib.as_array(self.llama.llama_get_logits(self.context), shape=(self.words,))
        return int(scores.argmax())

    def generate(self, prompt, count):
        self.llama.llama_memory_clear(self.llama.llama_get_memory(self.context), True)
        start = time.perf_counter()
        tokens = [self.read(prompt)]
        middle = time.perf_counter()
        while len(tokens) < count:
            tokens.append(self.read(tokens[-1:]))
        return {"tokens": tokens, "prompt_seconds": middle - start, "seconds": time.perf_counter() - middle}


def serve(config, path, threads):
    import llama_cpp

    model = Model(config, path, threads)
    print(json.dumps({"ready": True, "version": llama_cpp.__version__}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(model.generate(request["prompt"], request["tokens"])), flush=True)


def scores(config, weights, tokens):
    """Those of all words after these tokens, computed in double precision."""
    from safetensors.numpy import load_file

    w = {name: tensor.astype(np.float64) for name, tensor in load_file(weights).items()}
    width, heads = config["width"], config["heads"]

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def norm(x, name):
        centered = x - x.mean(-1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def attention(x, name):
        q, k, v = (part.reshape(-1, heads, width // heads).swapaxes(0, 1) for part in np.split(linear(x, f"{name}.c_attn"), 3, -1))
        logits = q @ k.swapaxes(1, 2) / np.sqrt(width // heads) + np.triu(np.full((len(x), len(x)), -np.inf), 1)
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        mixed = shares / shares.sum(-1, keepdims=True) @ v
        return linear(mixed.swapaxes(0, 1).reshape(-1, width), f"{name}.c_proj")

    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    x = w["wte.weight"][tokens] + w["wpe.weight"][: len(tokens)]
    for layer in range(config["layers"]):
        x = x + attention(norm(x, f"h.{layer}.ln_1"), f"h.{layer}.attn")
        x = x + linear(gelu(linear(norm(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc")), f"h.{layer}.mlp.c_proj")
    return w["wte.weight"] @ norm(x[-1], "ln_f")


def main(verb, config, *arguments):
    config = json.loads(config)
    if verb == "weights":
        write_weights(config, *arguments)
    elif verb == "gguf":
        write_gguf(config, *arguments)
    elif verb == "scores":
        request = json.loads(sys.stdin.readline())
        found = scores(config, arguments[0], request["tokens"])
        print(json.dumps({"best": int(found.argmax()), "scores": [float(found[token]) for token in request["next"]]}))
    else:
        serve(config, arguments[0], int(arguments[1]))


main(*sys.argv[1:])

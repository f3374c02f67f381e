"""Next-token choices of pagoda beside llama.cpp: llama.cpp writes 64 greedy tokens after each of 20 prompts, pagoda scores
the same tokens (teacher forcing, --prompt-logprobs), and the two argmaxes are compared position by position.

  PYTHONPATH=LLAMA_CPP_PYTHON_SOURCE LLAMA_CPP_LIB_PATH=LLAMA_CPP_BUILD/bin python3 bench/compare_llama_cpp.py MODEL.gguf...

Needs the source of llama-cpp-python 0.3.36 (for its ctypes binding), its vendor/llama.cpp built as shared libraries, numpy."""
import argparse
import json
import subprocess
import sys
import tempfile

import llama_cpp
import numpy as np

PROMPTS = [
    "The capital of France is", "Once upon a time, there was a", "def fibonacci(n):\n", "The quick brown fox", "In 1969, the",
    "Water boils at", "The most important thing about", "To make a good cup of tea,", "Dear Sir or Madam,", "The theory of",
    "Question: What is 2+2?\nAnswer:", "import numpy as np\n", "La ville de Paris", "The sun rises in the", "A recipe for bread:",
    "My favourite book is", "The president of the United States", "Birds can fly because", "SELECT name FROM", "It was a dark and",
]


class Llama:
    def __init__(self, path, threads):
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_threads, params.n_threads_batch = 512, threads, threads
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.size = llama_cpp.llama_vocab_n_tokens(self.vocab)

    def decode(self, ids):
        array = (llama_cpp.llama_token * len(ids))(*ids)
        batch = llama_cpp.llama_batch_get_one(array, len(ids))
        assert llama_cpp.llama_decode(self.context, batch) == 0
        return np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, -1), shape=(self.size,)).copy()

    def reset(self):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)


def tokenize(args, model, text):
    out = subprocess.run([args.pagoda, "tokenize", "-m", model, "-p", text], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["ids"]


def compare(args, model):
    peer, wanted, lines = Llama(model, args.threads), [], []
    for prompt in PROMPTS:
        ids = tokenize(args, model, prompt)
        peer.reset()
        logits, generated, gaps = peer.decode(ids), [], []
        for _ in range(args.tokens):
            second, first = np.partition(logits, -2)[-2:]
            generated.append(int(np.argmax(logits)))
            gaps.append(float(first - second))
            logits = peer.decode([generated[-1]])
        wanted.append((len(ids), generated, gaps))
        lines.append(json.dumps({"prompt_ids": ids + generated, "max_tokens": 1}))
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(lines))
        file.flush()
        out = subprocess.run([args.pagoda, "run", "-m", model, "--prompts", file.name, "--prompt-logprobs", "1", "--temp", "0",
                              "--json", "-t", str(args.threads)], check=True, capture_output=True, text=True).stdout
    total, equal, worst = 0, 0, 0.0
    for line, (start, generated, gaps) in zip(out.splitlines(), wanted):
        entries = json.loads(line)["prompt_logprobs"]
        for i, token in enumerate(generated):
            total += 1
            if entries[start + i]["top"][0]["id"] == token:
                equal += 1
            else:
                worst = max(worst, gaps[i])
    print(f"{model.split('/')[-1]}: argmax equal at {equal} of {total} positions ({100 * equal / total:.2f} %), "
          f"largest top-2 gap of a difference {worst:.3f}", flush=True)
    return equal / total >= 0.97 and worst <= 0.7


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--pagoda", default="build/release/bin/pagoda")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    return 0 if all([compare(args, model) for model in args.models]) else 1


if __name__ == "__main__":
    sys.exit(main())

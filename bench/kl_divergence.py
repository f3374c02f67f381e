"""Mean KL divergence of next-token distributions to the F32 computation of the dequantised file by Hugging Face
transformers, for llama.cpp and for pagoda: 20 prompts and the 64 tokens that llama.cpp writes after each, all forced.

  PYTHONPATH=LLAMA_CPP_PYTHON_SOURCE LLAMA_CPP_LIB_PATH=LLAMA_CPP_BUILD/bin python3 bench/kl_divergence.py MODEL.gguf...

Needs what compare_llama_cpp.py needs, torch 2.13, transformers 5.19 and gguf."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM

from compare_llama_cpp import PROMPTS, Llama, tokenize


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def kl(reference, logits):
    p, q = log_softmax(reference), log_softmax(logits)
    return (np.exp(p) * (p - q)).sum(-1)


def peer_run(peer, ids, count):
    """The `count` tokens that llama.cpp writes after `ids`, and the logits that it drew them from."""
    peer.reset()
    rows = [peer.decode(ids)]
    generated = []
    for _ in range(count):
        generated.append(int(np.argmax(rows[-1])))
        rows.append(peer.decode([generated[-1]]))
    return generated[:-1], np.stack(rows[:-1])


def compare(args, path):
    folder, name = os.path.split(os.path.abspath(path))
    reference = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager")
    peer, divergences = Llama(path, args.threads), []
    with tempfile.TemporaryDirectory() as work:
        file = os.path.join(work, "reference.gguf")
        writer = gguf.GGUFWriter(file, "reference-logits", use_temp_file=True)
        for i, prompt in enumerate(PROMPTS):
            ids = tokenize(args, path, prompt)
            generated, peer_logits = peer_run(peer, ids, args.tokens)
            ids = ids + generated
            with torch.no_grad():
                logits = reference(torch.tensor([ids])).logits[0, -args.tokens:].numpy()
            divergences.append(kl(logits, peer_logits))
            writer.add_array(f"ids.{i}", ids)
            writer.add_tensor(f"logits.{i}", np.ascontiguousarray(logits))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        out = subprocess.run([args.pagoda, "eval", "divergence", "-m", path, "-r", file, "-t", str(args.threads), "--json"]
                             + args.extra, check=True, capture_output=True, text=True).stdout
    ours, theirs = json.loads(out), float(np.concatenate(divergences).mean())
    print(f"{name}: mean KL to F32: pagoda {ours['mean_kl']:.5f}, llama.cpp {theirs:.5f}, ratio {ours['mean_kl'] / theirs:.2f}; "
          f"pagoda's argmax is the reference's at {100 * ours['same_argmax']:.2f} % of {ours['positions']} positions", flush=True)
    return ours["mean_kl"] <= 1.2 * theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--pagoda", default="build/release/bin/pagoda")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--extra", nargs="*", default=[], help="more arguments for pagoda eval divergence")
    args = parser.parse_args()
    return 0 if all([compare(args, model) for model in args.models]) else 1


sys.exit(main())

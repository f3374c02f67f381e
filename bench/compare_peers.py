"""Decode and prefill speed of pagoda beside llama.cpp on the same files: alternating runs, ratios of medians.

  python3 bench/compare_peers.py --llama-bench PATH/llama-bench MODEL.gguf... [--pagoda PATH] [-t 2] [-r 5] [--json OUT]

llama.cpp: the source distribution of llama-cpp-python 0.3.36 on PyPI, vendor/llama.cpp, built with GGML_NATIVE. Nothing else
should run meanwhile. One pair is one run of each program; the machine's own drift then hits both alike."""
import argparse
import json
import statistics
import subprocess
import sys


def pagoda(args, model):
    command = [args.pagoda, "bench", "-m", model, "-t", str(args.threads), "-r", "1", "--prefill", "512", "--decode",
               str(args.decode), "--json"]
    rows = [json.loads(line) for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()]
    return {row["test"]: row["tokens_per_s"]["median"] for row in rows if row["test"] in ("prefill", "decode")}


def llama(args, model):
    command = [args.llama_bench, "-m", model, "-t", str(args.threads), "-r", "1", "-p", "512", "-n", str(args.decode), "-o", "json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"prefill" if row["n_prompt"] else "decode": row["avg_ts"] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--pagoda", default="build/release/bin/pagoda")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-r", "--repeats", type=int, default=5)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--json")
    args = parser.parse_args()
    report = []
    for model in args.models:
        ours, theirs = {"prefill": [], "decode": []}, {"prefill": [], "decode": []}
        for _ in range(args.repeats):
            for store, run in ((ours, pagoda), (theirs, llama)):
                for test, value in run(args, model).items():
                    store[test].append(value)
        for test in ("prefill", "decode"):
            a, b = statistics.median(ours[test]), statistics.median(theirs[test])
            pairs = [x / y for x, y in zip(ours[test], theirs[test])]
            report.append({"model": model, "test": test, "pagoda": a, "llama.cpp": b, "ratio": statistics.median(pairs),
                           "ratio_min": min(pairs), "ratio_max": max(pairs)})
            print(f"{model.split('/')[-1]:<44} {test:<8} pagoda {a:8.1f}  llama.cpp {b:8.1f}  ratio {statistics.median(pairs):.2f} "
                  f"({min(pairs):.2f}-{max(pairs):.2f})", flush=True)
    if args.json:
        with open(args.json, "w") as out:
            json.dump(report, out, indent=1)


sys.exit(main())

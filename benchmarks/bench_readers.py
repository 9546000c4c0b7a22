"""Reading logs of lm-eval: 1 GB against the limit of a minute, and memory for many models.

Made-up logs with few-shot prompts as long as MMLU's. Time is scaled to 1 GB, and compared with
doing nothing but parsing the JSON. Then processor time of 8 models × 14,000 rows with short
prompts, which should be at most three times that of parsing: once with the documents' own hashes,
and once with others, as lm-eval logs them for documents with pictures. With --full, 5,000 models of
300 items: what memory they take beyond the table.

    python benchmarks/bench_readers.py --full
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fewbench.readers import import_results

LIMIT = 60.0  # seconds for 1 GB on two processors
MOST_PARSES = 3.0
MEMORY_LIMIT = 1e9  # bytes for 5,000 models of 300 items, whose table is 12 MB
STAMP = "2026-01-01T00-00-00.0"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_logs(
    folder: Path, models: int, documents: int, prompt: int, *, own_hashes: bool = True
) -> int:
    """Write a task of four options for some models; return the bytes."""
    rng = random.Random(0)
    shots = "example " * (prompt // 8)
    size = 0
    for model in range(models):
        own = folder / f"org__m{model}"
        own.mkdir(parents=True)
        with (own / f"samples_task_{STAMP}.jsonl").open("w") as file:
            for i in range(documents):
                worths = [-9 * rng.random() for _ in range(4)]
                document = {"question": f"Question {i}?", "choices": list("abcd"), "answer": 0}
                row = {
                    "doc_id": i,
                    "doc": document,
                    "target": "0",
                    "arguments": {
                        f"gen_args_{k}": {"arg_0": f"{shots}Question {i}?", "arg_1": f" {option}"}
                        for k, option in enumerate("abcd")
                    },
                    "resps": [[[str(worth), "False"]] for worth in worths],
                    "filtered_resps": [[str(worth), "False"] for worth in worths],
                    "filter": "none",
                    "metrics": ["acc"],
                    "doc_hash": sha(
                        json.dumps(document, indent=2) if own_hashes else f"document {i}"
                    ),
                    "prompt_hash": sha(f"prompt {i}"),
                    "target_hash": sha("0"),
                    "acc": float(max(worths) == worths[0]),
                }
                size += file.write(json.dumps(row) + "\n")
        results = {
            "model_name": f"org/m{model}",
            "n-samples": {"task": {"original": documents, "effective": documents}},
        }
        (own / f"results_{STAMP}.json").write_text(json.dumps(results))
    return size


def parse_only(folder: Path) -> float:
    started = time.perf_counter()
    for path in folder.rglob("*.jsonl"):
        with path.open("rb") as lines:
            for line in lines:
                json.loads(line)
    return time.perf_counter() - started


def imported(folder: Path, output: Path) -> tuple[float, int]:
    """Import through the command line; return seconds and the most memory of one process."""
    started = time.perf_counter()
    program = Path(sys.executable).with_name("fewbench")
    command = [str(program), "import", str(folder), "-o", str(output)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("the import failed")
    return time.perf_counter() - started, usage.ru_maxrss * 1024


def read_beside_parsing(folder: Path, n_models: int, n_rows: int) -> float:
    """Return the processor time of reading logs, over that of parsing them alone."""
    clock = [time.process_time()]
    parse_only(folder)
    clock.append(time.process_time())
    scores = import_results(folder).scores
    clock.append(time.process_time())
    assert (scores.n_models, scores.n_items) == (n_models, n_rows)
    assert not scores.has_missing
    return (clock[2] - clock[1]) / (clock[1] - clock[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    full = parser.parse_args().full
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write_logs(folder / "long", 8, 7000 if full else 1400, 4000)
        took, memory = imported(folder / "long", folder / "scores.parquet")
        alone = parse_only(folder / "long")
        per_gb = took * 1e9 / size
        print(
            f"{size / 1e9:.2f} GB of logs: {took:.1f} s, {took / alone:.1f} times parsing alone, "
            f"{memory / 1e6:.0f} MB; 1 GB takes {per_gb / LIMIT:.2f} of the limit of {LIMIT:.0f} s"
        )
        for kind, own_hashes in (("own", True), ("other", False)):
            write_logs(folder / kind, 8, 14_000, 450, own_hashes=own_hashes)
            ratio = read_beside_parsing(folder / kind, 8, 14_000)
            print(f"8 models × 14,000 rows with their {kind} hashes: {ratio:.1f} times parsing "
                  f"(limit {MOST_PARSES:g})", flush=True)  # fmt: skip
        if full:
            write_logs(folder / "many", 5000, 300, 80)
            took, memory = imported(folder / "many", folder / "many.parquet")
            print(
                f"5,000 models × 300 items: {took:.0f} s, {memory / 1e6:.0f} MB, "
                f"{memory / MEMORY_LIMIT:.2f} of the limit"
            )


if __name__ == "__main__":
    main()

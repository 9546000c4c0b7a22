"""Whole stories with known truth, run through the command line: what to expect of fewbench.

    python benchmarks/field.py [--stories training reruns …] [--worlds 20] [--output FOLDER]

Models are trained here, so what each answers to every question is known. A story writes results as
people have them, runs the commands that people run, and compares what they print with the truth.
`stories/` has a file for each story; results/field.md has the tables.
"""

import argparse
import time
from pathlib import Path

from stories import STORIES
from stories.found import table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", nargs="+", choices=STORIES, default=list(STORIES))
    parser.add_argument("--worlds", type=int, help="of each story (default: its own number)")
    given = parser.parse_args()
    for name in given.stories:
        story, worlds = STORIES[name]
        started = time.process_time()
        found = table(story(given.worlds or worlds)).to_markdown()
        took = time.process_time() - started
        print(f"## {name}\n\n{story.__doc__}\n\n{found}\n\n{took:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()

"""Make packs of scores files, such as those of `fewbench get`, whose license allows it.

    python scripts/make_packs.py FOLDER -o PACKS [-m METHOD] [-n ITEMS] [--license MIT …]

FOLDER holds scores files (.parquet). `fewbench get` writes NAME.source.json beside each, with the
license of the results and how to cite them. A file without it, or with a license that is not among
those of --license, is left out, with a message.
"""

import argparse
import json
import sys
from pathlib import Path

import fewbench
from fewbench.errors import FewbenchError
from fewbench.public.get import source_file

OPEN = ("MIT", "Apache-2.0", "BSD-3-Clause", "CC0-1.0", "CC-BY-4.0", "CC BY 4.0")


def main() -> int:
    """Make a pack of each file; exit code 1 if any fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", "-o", type=Path, required=True, help="Folder of the packs.")
    parser.add_argument("--method", "-m", default="auto")
    parser.add_argument("--budget", "-n", type=int, default=100)
    parser.add_argument("--license", action="append", help="Licenses that allow it.")
    parser.add_argument("--anonymous", action="store_true")
    parser.add_argument("--force", action="store_true")
    given = parser.parse_args()
    allowed = {name.lower() for name in given.license or OPEN}
    files = sorted(given.folder.glob("*.parquet"))
    if not files:
        print(f"{given.folder}: no scores files (.parquet)", file=sys.stderr)
        return 1
    failed = 0
    for path in files:
        said = _source(path)
        if str(said.get("license", "")).lower() not in allowed:
            print(f"{path.name}: left out, its license is {said.get('license', 'not known')}")
            continue
        try:
            made = fewbench.pack(
                fewbench.load_scores(path),
                given.method,
                given.budget,
                name=f"{path.stem}-{given.budget}",
                license=said["license"],
                cite=said.get("cite"),
                anonymous=given.anonymous,
                on_step=lambda text, name=path.stem: print(f"{name}: {text}", file=sys.stderr),
            )
            given.output.mkdir(parents=True, exist_ok=True)
            target = made.save(given.output / f"{made.record.name}.few", force=given.force)
        except FewbenchError as error:
            print(f"{path.name}: {error}")
            failed += 1
            continue
        print(f"{target}: {target.stat().st_size / 1024:,.0f} kB")
    return int(failed > 0)


def _source(path: Path) -> dict[str, str]:
    """Return the license of a scores file and how to cite it, as `fewbench get` wrote them."""
    try:
        told = json.loads(source_file(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    kept = {key: told.get(key) for key in ("license", "cite")} if isinstance(told, dict) else {}
    return {key: str(value) for key, value in kept.items() if value}


if __name__ == "__main__":
    sys.exit(main())

"""Imports point one way, `import fewbench` stays light, and nothing is ever unpickled."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import fewbench
from fewbench import Evaluation, save_scores
from fewbench.cli.app import COMMANDS
from fewbench.methods.catalogue import ADAPTIVE, CATALOGUE, WITH_FILE
from fewbench.methods.parts import STAGES
from fewbench.methods.written import plain
from fewbench.testing import simulate

ROOT = Path(fewbench.__file__).parent
BESIDE = [ROOT.parent / name for name in ("fewbench_logs", "fewbench_papers")]
"""Packages that the core knows only by their entry points."""
BASE = {
    "errors",
    "_arrays",
    "_blocks",
    "_content",
    "_journal",
    "_json",
    "_lazy",
    "_memory",
    "_names",
    "_plugins",
    "_progress",
    "_seeds",
    "_text",
    "_files",
    "_threads",
    "_types",
    "_version",
    "_warned",
    "support",
}
BELOW = {
    "executors": {"executors"},
    "algorithms": {"algorithms"},
    "show": {"show", "scores"},
    "scores": {"scores"},
    "methods": {"methods", "algorithms", "scores"},
    "checks": {"checks", "show", "methods", "algorithms", "scores"},
    "uncertainty": {"uncertainty", "methods", "scores", "algorithms", "executors"},
    "evaluation": {
        *("evaluation", "show", "uncertainty", "methods", "public", "readers", "scores"),
        *("algorithms", "executors"),
    },
    "study": {
        *("study", "show", "evaluation", "uncertainty", "methods", "scores", "algorithms"),
        *("executors", "fewbench"),
    },
    "packs": {
        *("packs", "show", "study", "evaluation", "uncertainty", "methods", "scores", "executors"),
    },
    "decide": {
        *("decide", "show", "study", "evaluation", "uncertainty", "runners", "methods", "scores"),
        "algorithms",
    },
    "readers": {"readers", "scores", "executors"},
    "runners": {
        *("runners", "show", "evaluation", "uncertainty", "methods", "public", "readers", "scores"),
    },
    "public": {"public", "readers", "checks", "scores", "executors"},
}
ABOVE = {"cli"}


@cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def core():
    return sorted(ROOT.rglob("*.py"))


def beside():
    return sorted(path for package in BESIDE for path in package.rglob("*.py"))


def sources():
    return [*core(), *beside()]


def room_of(path):
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imported(path):
    """The modules of fewbench that a file imports, at its top or inside its functions."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "fewbench":
                yield name.split(".")[1] if "." in name else "fewbench"


def test_imports_point_one_way():
    wrong = {}
    for path in core():
        room = room_of(path)
        if room in BELOW and (above := set(imported(path)) - BELOW[room] - BASE):
            wrong[str(path)] = above
    assert not wrong


def test_no_room_but_themselves_imports_the_topmost():
    for path in core():
        if room_of(path) not in {*ABOVE, "__init__", "__main__"}:
            assert not set(imported(path)) & ABOVE, path


def names_of(path):
    """The full names of modules, and of what is taken from them, that a file imports."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_core_knows_no_package_beside_it():
    names = tuple(package.name for package in BESIDE)
    for path in core():
        assert not [name for name in names_of(path) if name.startswith(names)], path
        assert not set(names) & {*re.findall(r"fewbench_\w+", path.read_text())}, path


def test_packages_beside_the_core_use_its_public_names_alone():
    """As a package of a user's does; and each other's not at all."""
    for path in beside():
        own = path.relative_to(ROOT.parent).parts[0]
        for name in names_of(path):
            package, *inner = name.split(".")
            if package.startswith("fewbench"):
                assert package in ("fewbench", own), f"{path} imports {name}"
                private = [part for part in inner if part.startswith("_")]
                assert package == own or not private, f"{path} imports {name}"


def test_no_room_reaches_into_another_s_private_names():
    for path in core():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fewbench."):
                parts = node.module.split(".")[1:]
                private = [p for p in parts[1:] if p.startswith("_")]
                private += [a.name for a in node.names if a.name.startswith("_")]
                if private and parts[0] != "_version":
                    assert parts[0] == room_of(path), f"{path} imports {node.module} {private}"


def test_only_one_place_prints():
    """There control characters are written out."""
    helps = {"_text.py", "runners/lm_eval/setup.py"}  # the last: lm-eval's own help
    for path in sources():
        if path.relative_to(ROOT.parent).as_posix().removeprefix("fewbench/") not in helps:
            for node in nodes(path):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    assert node.func.id != "print", f"{path}, line {node.lineno}: use echo or say"


UNQUOTED = {
    # whole numbers, and words from short lists
    *("len(self.shown)", "most", "keep", "min(100, -(-n_items // 2))", "','.join(budgets)"),
    *("BUDGET", "max(items, 1)", "more", "run - budget", "provenance.budget", "provenance.seed"),
    *("items", "counted(left, 'more item')", "wanted", "harness", "kind", "provenance.average"),
    *("average", "scores.average", "leads.average", "transform", "self.tried_at"),
    *("OTHER_DOMAIN", "some(list(named))", "'|'.join(metrics)", "','.join(first)"),
    # quoted by the caller, and no part of a command
    *("method", "cost", "known", "questions", "text", "some(there)", "why", "status.limit"),
    *("QUESTION", "some(there, most=12)"),
}
"""What may stand in a printed command as it is."""
COMMAND = re.compile(
    rf"(?:\bfewbench (?:{'|'.join(COMMANDS)})|(?<![\w-])--[a-z][a-z-]*)[ =]"
    r"(?:[^\n;,.:()\0]|\0\d+\0)*"
)


def test_commands_that_are_printed_are_quoted():
    """They are printed to be copied: a folder may be named `sp ace`, or `a$(touch X)`."""
    found = []
    for path in sources():
        source = path.read_text()
        for node in (node for node in nodes(path) if isinstance(node, ast.JoinedStr)):
            values = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            at = iter(range(len(values)))
            text = "".join(
                part.value if isinstance(part, ast.Constant) else f"\0{next(at)}\0"
                for part in node.values
            )
            for command in COMMAND.findall(text):
                for number in re.findall(r"\0(\d+)\0", command):
                    value = ast.unparse(values[int(number)])
                    made = rf"\b{re.escape(value)} = .*\bquoted?\("  # quoted before
                    is_quoted = re.match(r"(shlex\.)?quoted?\(", value) or re.search(made, source)
                    if not is_quoted and value not in UNQUOTED:
                        found.append(f"{path}, line {node.lineno}: quote {value}")
    assert not found


UNREAD = {
    *("_all(version)", "_parquet(text)", "_parquet(words)", "_json(words)"),
    *("read_swe_bench(ask)", "read_tau2(ask)", "read_alpaca(ask)"),
    *("find_livecodebench(ask)", "find_livecodebench(fetcher)"),
}
"""What typer reads, and parameters of functions that share a signature."""
KEYS = {"changed", "size", "state", "loaded"}
"""Parameters that only tell a cache when to read again."""


def test_each_parameter_of_a_function_is_read():
    """An option that is declared and ignored is a promise that is not kept."""
    unread = set()
    for path in sources():
        # In cli options are also read by their name: given["output"].
        names = {n.value for n in nodes(path) if isinstance(n, ast.Constant)}
        for each in nodes(path)[0].body:
            if isinstance(each, ast.FunctionDef):
                parameters = {a.arg for a in (*each.args.args, *each.args.kwonlyargs)} - {"_"}
                read = {n.id for b in each.body for n in ast.walk(b) if isinstance(n, ast.Name)}
                left = (
                    parameters
                    - read
                    - KEYS
                    - (names if {"cli", "commands"} & {*path.parts} else set())
                )
                unread |= {f"{each.name}({name})" for name in left}
    assert unread == UNREAD


HEAVY = {
    *(
        "sklearn",
        "scipy.stats",
        "scipy.spatial",
        "pyarrow.parquet",
        "matplotlib",
        "altair",
        "vl_convert",
        "typer",
        "rich",
    ),
    *("joblib", "openai", "umap", "jinja2", "lm_eval", "inspect_ai", "torch", "transformers"),
    *("huggingface_hub", "httpx2"),
    *("pytest", "hypothesis"),
}


UNPICKLING = {"pickle", "dill", "marshal"}
NUMERICAL = {"numpy", "pandas", "scipy", "pydantic", "pyarrow"}
CALLS = "from fewbench.cli import app\nfor words in {}: app(words, standalone_mode=False)"
OF_EVALUATIONS = ("start", "ask", "tell", "estimate", "view", "repair")
"""Commands whose options are written in the command line's own modules."""
STARTS = {
    "import fewbench": "import fewbench",
    "fewbench --version": CALLS.format([["--version"]]),
    "fewbench --help": CALLS.format([["--help"]]),
    "fewbench ask --help": CALLS.format([[name, "--help"] for name in OF_EVALUATIONS]),
}


def newly_imported(first, code):
    """What a fresh interpreter imports for `code` beyond what it imports for `first`."""
    program = f"import sys\n{first}\nbefore = set(sys.modules)\n{code}\n"
    program += "print(*(set(sys.modules) - before))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()[-1].split()


def test_using_fewbench_is_light():
    """Nothing heavy is imported but what numpy, pandas and pydantic import themselves."""
    code = "import fewbench.decide; fewbench.Evaluation"
    new = newly_imported("import numpy, pandas, pydantic", code)
    assert {"fewbench.evaluation", "fewbench.decide"} <= {*new}
    heavy = [name for name in new if any(name == h or name.startswith(f"{h}.") for h in HEAVY)]
    assert not heavy


def test_evaluations_decisions_and_readers_need_no_catalogue():
    """The catalogue imports every method, which takes a sixth of a second."""
    new = newly_imported("pass", "import fewbench.decide, fewbench.cli.decide, fewbench.readers")
    assert not [name for name in new if name.startswith(("fewbench.methods.cat", "fewbench_"))]


@pytest.mark.parametrize("start", STARTS)
def test_starting_is_lighter_still(start):
    """Whoever only imports fewbench, or reads its help, does not wait for any numerical package."""
    new = {name.split(".")[0] for name in newly_imported("pass", STARTS[start])}
    assert "fewbench" in new
    assert not new & (NUMERICAL | HEAVY - {"typer"})


def test_help_waits_for_no_tables():
    """Options made from a function need its annotations, and these NumPy and pydantic at most."""
    new = newly_imported("pass", CALLS.format([[name, "--help"] for name in COMMANDS]))
    assert "fewbench.study.plan" in new
    assert not {name.split(".")[0] for name in new} & (NUMERICAL - {"numpy", "pydantic"})


def test_ask_and_tell_wait_for_what_they_use(tmp_path):
    """`ask` reads no results, and `tell` no public sources; neither computes anything."""
    answers, run = tmp_path / "answers.csv", tmp_path / "run"
    table = simulate(8, 40)
    evaluation = Evaluation(table, "random", 10, ["new"])
    evaluation.save(run, save_scores(table, tmp_path / "scores.parquet"))
    answers.write_text("\n".join(["item,score", *(f"{at},1" for at in evaluation.ask()["new"])]))
    heavy = {*HEAVY, "fewbench.public", "fewbench.study", "fewbench.decide"} - {"typer"}
    for words, unused in (
        (["ask", str(run)], {*heavy, "fewbench.readers", "fewbench_logs"}),
        (["tell", str(run), str(answers), "--item", "item", "--score", "score"], heavy),
    ):
        new = newly_imported("import numpy, pandas, pyarrow.parquet", CALLS.format([words]))
        assert "fewbench.evaluation" in new
        assert not [name for name in new if any(f"{name}.".startswith(f"{h}.") for h in unused)]


def unsafe(node):
    """Say what of a node unpickles or executes, if anything."""
    match node:
        case ast.Import(names=names):
            found = {a.name.split(".")[0] for a in names} & UNPICKLING
            return f"imports {found}" if found else None
        case ast.ImportFrom(module=str(module)) if module.split(".")[0] in UNPICKLING:
            return f"imports {module}"
        case ast.keyword(arg="allow_pickle", value=value):
            refused = isinstance(value, ast.Constant) and value.value is False
            return None if refused else "allow_pickle is not False"
        case ast.Call(func=ast.Name(id="eval" | "exec" as name)):
            return f"calls {name}"
        case ast.Call(func=ast.Attribute(attr="read_pickle" | "to_pickle" as name)):
            return f"calls {name}"
    return None


def test_nothing_is_unpickled_or_executed():
    found = {(str(path), unsafe(node)) for path in sources() for node in nodes(path)}
    assert not {(path, what) for path, what in found if what}


@pytest.mark.parametrize(
    "text",
    [
        *("import pickle", "import a, dill.x", "from marshal import loads", "eval(x)", "exec(x)"),
        *("load(allow_pickle=True)", "load(allow_pickle=x)", "a.read_pickle()", "a.to_pickle()"),
    ],
)
def test_what_unpickles_or_executes_is_seen(text):
    assert any(map(unsafe, ast.walk(ast.parse(text))))


# Lists of what is not so yet. They only get shorter: what is no longer so is taken out.

OWN_JSON = {"fewbench_papers.bento.selection", "methods.subset"}
"""Modules with a `to_json` of their own; `show.page` is to have the one of all results."""
SCRIPT = Path(__file__).parents[1] / "scripts/code_lines.py"


def modules():
    """The names of all modules, with the nodes of their syntax trees."""
    for path in sources():
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__"), nodes(path)


def test_each_class_name_stands_once():
    names = Counter(
        node.name
        for _, found in modules()
        for node in found
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not {name for name, times in names.items() if times > 1}


def test_no_files_import_each_other_in_a_circle():
    """Imports for types and inside functions count."""
    found = dict(modules())
    place = {name: at for at, name in enumerate(found)}
    graph = np.zeros((len(found), len(found)), dtype=bool)
    for name, tree in found.items():
        for node in tree:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{one.name}" for one in node.names)]
                graph[place[name], [place[one] for one in names if one in place]] = True
    circle_of = connected_components(graph, connection="strong")[1]
    is_shared = np.bincount(circle_of)[circle_of] > 1
    assert [name for name, is_in in zip(found, is_shared, strict=True) if is_in] == []


def test_results_are_written_as_json_in_one_place():
    own = {
        name.removeprefix("fewbench.")
        for name, found in modules()
        for node in found
        if isinstance(node, ast.FunctionDef) and node.name == "to_json"
    }
    assert own - {"show.page"} == OWN_JSON


def test_code_lines_stay_within_their_limits():
    """`python scripts/code_lines.py --lower` lowers them; a higher one needs a reason."""
    spec = importlib.util.spec_from_file_location("code_lines", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    limits, lines = script.limits(), script.now()
    numbers = {**lines, **script.totals(lines)}
    assert {package: n for package, n in numbers.items() if n > limits.get(package, 0)} == {}


SET_BY_FEWBENCH = {
    "tasks-listed(names)": "tasks select --list",
    "optimal-design(sources)": "backtests with fewer source models run the rule for all of them",
    "kriging(sources)": "the same",
}
"""Settings that only fewbench itself changes, and where."""


def is_set(setting, texts):
    """Whether a text gives a setting another value than its default, or tries several."""
    default = re.escape(plain(setting.default))
    other = re.compile(rf'\b{setting.name}(?:=(?!{default}\b)[\w.{{"]|": \()')
    return any(other.search(text) for text in texts)


def test_each_setting_is_set_by_an_entry_an_example_or_a_benchmark():
    """What nobody sets is a constant. Of a page, the part is named in the same paragraph."""
    parts = {name: part for by in (*STAGES.values(), ADAPTIVE) for name, part in by.items()}
    root, texts = ROOT.parents[1], [entry.parts for entry in {**CATALOGUE, **WITH_FILE}.values()]
    for page in (root / "README.md", *root.glob("docs/**/*.md")):
        texts += re.split(r"\n(?=\n|- )", page.read_text(encoding="utf-8"))
    texts += [path.read_text(encoding="utf-8") for path in root.glob("benchmarks/**/*.py")]
    unset = set()
    for name, part in parts.items():
        named = re.compile(rf"(?<![\w-])({name}(?![\w-])|{part.__name__}\b)")
        of_part = [text for text in texts if named.search(text)]
        unset |= {f"{name}({each.name})" for each in fields(part) if not is_set(each, of_part)}
    assert unset == set(SET_BY_FEWBENCH)

"""The results_*.json of a run: the model's name, how many documents, how they were scored."""

import ast
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from fewbench.readers.files import JsonObject, at
from fewbench.readers.harness import LogUnit
from fewbench.readers.values import ADDRESS, called, setting, shortened
from fewbench.scores.conditions import GENERATION, SAMPLER, SCORING, SHOTS, TEMPLATE

NO_VERSION = ("", "None", "N/A", "Yaml")
LENGTHS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")  # one meaning
# What is equal to a generation argument that is not set.
UNSET = {"do_sample": "false", "temperature": "0", "top_p": "1"}
# What is equal to an argument of a filter that is not set.
FILTER_UNSET = {"group_select": "0", "fallback": "[invalid]"}
NO_ARGUMENTS = ("aggregation", "higher_is_better")
NO_MEANS = (
    *("perplexity", "weighted_perplexity", "bits_per_byte", "median", "brier_score"),
    *("f1", "matthews_corrcoef", "bleu", "chrf", "ter"),
)
"""Aggregations of lm-eval of which a row's value is a part and no score."""
NOT_SET = ("none", "false", "[]", "")
ASKED = (
    *("description", "doc_to_text", "target_delimiter", "fewshot_delimiter", "gen_prefix"),
    "use_prompt",
)
CODE = re.compile(r"\s*(@|def |async def |class |lambda\b)")
NAMES = ("peft", "delta", "pretrained", "model", "path", "engine")  # lm-eval looks in this order


class Results(JsonObject):
    """A results file, cached for all sample files of its run."""

    @property
    def model(self) -> str | None:
        """The model's name with its revision, None if the run has none."""
        arguments = self.arguments
        name = self.data.get("model_name")
        if not (isinstance(name, str) and name.strip()):
            name = next((arguments[key] for key in NAMES if arguments.get(key)), None)
        revision = arguments.get("revision", "main")
        return name if name is None or revision in ("main", "None", "") else f"{name}@{revision}"

    @property
    def arguments(self) -> dict[str, str]:
        """The model's arguments; older versions log them as 'key=value,key=value'."""
        raw = self.part("config").get("model_args")
        if isinstance(raw, str):
            pairs = (pair.partition("=") for pair in raw.split(","))
            return {key.strip(): value for key, _, value in pairs}
        return {str(k): str(v) for k, v in raw.items()} if isinstance(raw, dict) else {}

    def sizes(self, task: str, logged: int) -> tuple[int | None, int | None]:
        """Return the number of documents of a task and of those run if known.

        `logged` is the number of rows. Before 0.4.3 they are all documents if there was no limit.
        0.4.9 to 0.4.11 state the whole size also for runs with `--samples`.
        """
        if "n-samples" not in self.data:
            config = self.part("config")
            return (logged if "limit" in config and config["limit"] is None else None), None
        counts = self.part("n-samples", task)
        return _count(counts.get("original")), _count(counts.get("effective"))

    def known(
        self, task: str, logged: int, filtered: str | None, *, in_context: bool = False
    ) -> dict[str, Any]:
        """Return fields of `LogRun` that the file states; see `scoring`."""
        total, ran = self.sizes(task, logged)
        scoring = self.scoring(task, filtered, in_context=in_context)
        return {
            "total": total,
            "ran": ran,
            "version": self.version(task),
            "settings": tuple(sorted(self.arguments.items())),
            "task_settings": tuple(sorted((self.task_settings(task) | scoring).items())),
            "scorers": self.scorers(task),
            "higher_is_better": self.directions(task),
            "aggregated": self.aggregations(task),
        }

    def directions(self, task: str) -> dict[str, bool]:
        """Return metric → whether higher is better, where stated."""
        stated = self.part("higher_is_better", task)
        return {name: value for name, value in stated.items() if isinstance(value, bool)}

    def aggregations(self, task: str) -> dict[str, str]:
        """Return metric → its aggregation, where lm-eval's aggregation is not a mean."""
        listed = self.part("configs", task).get("metric_list")
        named = (
            [entry for entry in listed if isinstance(entry, dict)]
            if isinstance(listed, list)
            else []
        )
        stated = {str(entry.get("metric")): str(entry.get("aggregation")) for entry in named}
        return {metric: name for metric, name in stated.items() if name in NO_MEANS}

    def filters(self, task: str) -> list[str]:
        """Return the task's filters in the order of a file's rows; [] if it names none."""
        listed = self.part("configs", task).get("filter_list")
        named = listed if isinstance(listed, list) else []
        return [str(entry.get("name")) for entry in named if isinstance(entry, dict)]

    def version(self, task: str) -> str:
        """Return the task's version, "" if the file does not say."""
        return str(self.part("versions").get(task) or "")

    def suite(self, task: str) -> str:
        """Return the groups that hold a task, outermost first: "mmlu/mmlu_stem", "" if none."""
        holders = {
            str(child): group
            for group, children in self.part("group_subtasks").items()
            if isinstance(children, list)
            for child in children
        }
        path: list[str] = []
        while (task := holders.get(task, "")) and task not in path:
            path.insert(0, task)
        return "/".join(path)

    def variant(self, task: str) -> str:
        """Return the settings that make a run of the task a different run."""
        settings = {"shots": self.part("n-shot").get(task)}
        for name in ("chat_template_sha", "system_instruction_sha"):
            if self.data.get(name):
                settings[name.removesuffix("_sha")] = str(self.data[name])[:8]
        if self.data.get("fewshot_as_multiturn"):
            settings["turns"] = True
        settings["generation"] = self.part("config").get("gen_kwargs") or None
        return ", ".join(f"{name}={value}" for name, value in settings.items() if value is not None)

    def task_settings(self, task: str) -> dict[str, str]:
        """Return the task settings that change answers or scores, without the model's own.

        See `scoring` for those that depend on the filter.
        """
        config = self.part("configs", task)
        if not config:
            return {}
        shots = self.part("n-shot").get(task, config.get("num_fewshot"))
        template = self.data.get("chat_template")
        chat = template is not None
        settings = {
            SHOTS: setting(shots or 0),
            "system prompt": setting(self.data.get("system_instruction") or None),
        }
        # Until 0.4.6 models without a template of their own log "" whether one is applied or not.
        if template != "" or self.data.get("lm_eval_version"):
            settings["chat template"] = "applied" if chat else "not applied"
        if self.version(task) not in NO_VERSION:
            settings["task version"] = setting(self.version(task))
        if shots:
            settings[SAMPLER] = setting(at(config, "fewshot_config", "sampler") or "default")
            if chat:
                settings["examples as turns"] = setting(bool(self.data.get("fewshot_as_multiturn")))
        kind = config.get("output_type")
        if kind in ("multiple_choice", "loglikelihood"):
            settings["target delimiter"] = repr(str(config.get("target_delimiter", " ")))
        settings["output type"] = setting(kind)
        settings[TEMPLATE] = setting({name: code(config.get(name) or "") for name in ASKED})
        return settings | _generation(config)

    def scoring(
        self, task: str, filtered: str | None, *, in_context: bool = False
    ) -> dict[str, str]:
        """Return how answers are scored, except for the metric's arguments (see `scorers`).

        Parameters
        ----------
        task : str
        filtered : str or None
            The filter's name.
        in_context : bool
            Whether options stand in the contexts: then `doc_to_text` says which one is right.
        """
        config = self.part("configs", task)
        if not config:
            return {}
        settings = {f"{SCORING}function": code(config.get("process_results") or "none")}
        if (steps := self._steps(task, filtered)) is not None:
            settings[f"{SCORING}filter"] = shortened(steps)
        if "repeats" in config:
            settings[f"{SCORING}repeats"] = setting(config["repeats"])
        if in_context:
            settings[f"{SCORING}right option"] = code(config.get("doc_to_text"))
        elif config.get("output_type") == "generate_until":  # its options are in no request
            settings[f"{SCORING}options"] = code(config.get("doc_to_choice") or "none")
        return settings

    def _steps(self, task: str, filtered: str | None) -> str | None:
        """Return the steps of a filter with their arguments, None if the file has none so named."""
        listed = self.part("configs", task).get("filter_list")
        if listed is None:
            return "take_first" if filtered in (None, "none") else None
        for entry in listed if isinstance(listed, list) else []:
            steps = entry.get("filter") if isinstance(entry, dict) else None
            if isinstance(steps, list) and str(entry.get("name")) == filtered:
                return ", ".join(
                    _called(step, "function", FILTER_UNSET)
                    for step in steps
                    if isinstance(step, dict)
                )
        return None

    def scorers(self, task: str) -> dict[str, str]:
        """Return metric → its name and arguments, where the file states them."""
        listed = self.part("configs", task).get("metric_list")
        scorers = {}
        for entry in listed if isinstance(listed, list) else []:
            if isinstance(entry, dict) and (metric := entry.get("metric")):
                named = re.search(r"\bdef (\w+)", str(metric))
                scorers[named[1] if named else str(metric)] = _called(entry, "metric")
        return scorers

    @property
    def prompt_form(self) -> str:
        """A hash of the chat template; "" if there is none."""
        return str(self.data.get("chat_template_sha") or "")[:8]

    @property
    def harness_version(self) -> str:
        """The version of lm-eval; it has logged that since 0.4.9."""
        return str(self.data.get("lm_eval_version") or "older than 0.4.9")

    def delimiter(self, task: str) -> str:
        """Return the text between prompt and option."""
        config = self.part("configs", task)
        prefix = config.get("gen_prefix")
        if self.data.get("chat_template") and not (prefix and prefix == str(prefix).rstrip()):
            return ""
        return str(config.get("target_delimiter", " "))


def _called(step: Mapping[str, Any], name: str, unset: Mapping[str, str] | None = None) -> str:
    settings = {key: code(value) for key, value in step.items() if key not in (name, *NO_ARGUMENTS)}
    return called(code(step.get(name)), settings, unset, NOT_SET)


def code(value: Any) -> str:
    """Return a value of a task's configuration as text.

    For a function, lm-eval logs the source or only an object's name. Comments, annotations and
    layout do not count, and no address.

    Examples
    --------
    >>> code("def f(doc: dict) -> int: return 1  # always")
    'def f(doc):     return 1'
    >>> code("<function f at 0x7f2ddf4cd260>"), code("<class 'tasks.utils.Words'>"), code(0.50)
    ('<function f>', "<class 'Words'>", '0.5')
    """
    if not callable(value) and not isinstance(value, str):
        return setting(value)
    text = ADDRESS.sub("", str(value))
    if not CODE.match(text):
        return setting(text)
    try:
        tree = ast.parse(textwrap.dedent(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return shortened(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
            if ast.get_docstring(node) is not None and len(node.body) > 1:
                del node.body[0]
    return shortened(ast.unparse(tree).replace("\n", " "))


def model_of_others(unit: LogUnit) -> str:
    """Return the model of the folder's other results, or the folder's name."""
    others = {Results.read(other).model for other in unit.beside} - {None}
    folder = unit.path.absolute().parent.name.replace("__", "/")
    return str(others.pop()) if len(others) == 1 else folder


def _generation(config: dict[str, Any]) -> dict[str, str]:
    arguments = config.get("generation_kwargs")
    if config.get("output_type") != "generate_until" or not isinstance(arguments, dict):
        return {}
    settings = {}
    for name, value in arguments.items():
        if name == "until":
            value = sorted(map(str, value)) if isinstance(value, list) else [str(value)]
        text = setting(value)
        if text not in ("none", UNSET.get(name)):
            settings[GENERATION + (LENGTHS[0] if name in LENGTHS else str(name))] = text
    return settings


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

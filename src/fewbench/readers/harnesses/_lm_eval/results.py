"""The results_*.json of a run: the model's name, how many documents, which way is better."""

from typing import Any

from fewbench.readers.json_files import JsonObject

NAMES = ("peft", "delta", "pretrained", "model", "path", "engine")  # lm-eval looks in this order


class Results(JsonObject):
    """One results file, read once for all sample files of its run."""

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
        """Return how many documents a task has and how many were run, where the file tells.

        `logged` is how many rows there are: before 0.4.3 only an absent limit says that they are
        all, and 0.4.9 to 0.4.11 write the whole size also for runs with `--samples`.
        """
        if "n-samples" not in self.data:
            config = self.part("config")
            return (logged if "limit" in config and config["limit"] is None else None), None
        counts = self.part("n-samples", task)
        return _count(counts.get("original")), _count(counts.get("effective"))

    def directions(self, task: str) -> dict[str, bool]:
        """Return for which metrics the file says whether a larger value is better."""
        told = self.part("higher_is_better", task)
        return {name: value for name, value in told.items() if isinstance(value, bool)}

    def filters(self, task: str) -> list[str]:
        """Return the task's filters in the order of a file's rows; [] if it names none."""
        listed = self.part("configs", task).get("filter_list")
        named = listed if isinstance(listed, list) else []
        return [str(one.get("name")) for one in named if isinstance(one, dict)]

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
        """Return how the task was asked, as far as it makes answers another run's."""
        found = {"shots": self.part("n-shot").get(task)}
        for name in ("chat_template_sha", "system_instruction_sha"):
            if self.data.get(name):
                found[name.removesuffix("_sha")] = str(self.data[name])[:8]
        if self.data.get("fewshot_as_multiturn"):
            found["turns"] = True
        found["generation"] = self.part("config").get("gen_kwargs") or None
        return ", ".join(f"{name}={value}" for name, value in found.items() if value is not None)

    def delimiter(self, task: str) -> str:
        """Return what lm-eval put between the prompt and an option."""
        config = self.part("configs", task)
        prefix = config.get("gen_prefix")
        if self.data.get("chat_template") and not (prefix and prefix == str(prefix).rstrip()):
            return ""
        return str(config.get("target_delimiter", " "))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

"""The results_TIME.json of a run of lighteval: model, sizes, versions, which way is better."""

from collections.abc import Iterator
from typing import Any

from fewbench.readers.json_files import JsonObject

# What a run says of itself besides the model's settings.
ASIDE = (
    "cache_dir",
    "config",
    "end_time",
    "job_id",
    "lighteval_sha",
    "max_samples",
    "model_config",
    "model_name",
    "model_size",
    "num_fewshot_seeds",
    "start_time",
    "total_evaluation_time_secondes",
)


class Results(JsonObject):
    """One results file; every method is silent where the file is."""

    @property
    def model(self) -> str | None:
        """The model's name."""
        name = self.part("config_general").get("model_name")
        return name.strip("/") if isinstance(name, str) and name.strip("/ ") else None

    def sizes(self, task: str, logged: int) -> tuple[int | None, int | None]:
        """Return how many documents a task has and how many were run, where the file tells.

        Since 0.11 the file has no numbers; without --max-samples the logged rows are then all.
        """
        config = self._config(task)
        total, ran = config.get("original_num_docs"), config.get("effective_num_docs")
        if _is_count(total):
            return total, ran if _is_count(ran) else None
        general = self.part("config_general")
        whole = "max_samples" in general and general["max_samples"] is None
        return (logged if whole else None), None

    def version(self, task: str) -> str:
        """Return a task's version, "" if not known."""
        found = self.part("versions").get(task, self._config(task).get("version"))
        return "" if found is None else str(found)

    def settings(self) -> tuple[tuple[str, str], ...]:
        """Return the model's arguments, and how it was let answer."""
        general = self.part("config_general")
        found = {key: value for key, value in general.items() if key not in ASIDE}
        if isinstance(own := general.get("model_config"), dict):
            found |= {key: value for key, value in own.items() if key not in ASIDE}
        if isinstance(more := found.pop("generation_parameters", None), dict):
            found |= more
        return tuple((key, str(found[key])) for key in sorted(found) if found[key] is not None)

    def higher_is_better(self, task: str) -> dict[str, bool]:
        """Return for metrics whether higher is better."""
        return dict(self._directions(task))

    def _directions(self, task: str) -> Iterator[tuple[str, bool]]:
        config = self._config(task)
        listed = config.get("metrics", config.get("metric"))
        for metric in listed if isinstance(listed, list) else []:
            if not isinstance(metric, dict):
                continue
            names, higher = metric.get("metric_name"), metric.get("higher_is_better")
            for name in names if isinstance(names, list) else [names]:
                told = higher.get(name) if isinstance(higher, dict) else higher
                if isinstance(name, str) and isinstance(told, bool):
                    yield name, told

    def _config(self, task: str) -> dict[str, Any]:
        configs = self.part("config_tasks")
        # Until 0.10 the key lacks the number of examples, which ends the task's name.
        for name in (task, task.rpartition("|")[0]):
            if isinstance(found := configs.get(name), dict):
                return found
        return {}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0

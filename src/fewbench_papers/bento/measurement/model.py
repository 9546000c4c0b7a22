"""The model of lm-eval that a measurement asks."""

import os
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from fewbench.support import keep_secrets

NAMES = ("pretrained", "model")
ONE_PROMPT = ("hf", "hf-auto", "huggingface")
"""Models of lm-eval that score all letters of a question in one pass; others ask one by one."""
HOW = {  # arguments of lm-eval's models that do not change answers
    *("base_url", "num_concurrent", "max_retries", "timeout", "batch_size", "max_batch_size"),
    *("device", "parallelize", "api_key", "token", "auth_token", "header", "verify_certificate"),
    *("ca_cert_path", "tensor_parallel_size", "data_parallel_size", "gpu_memory_utilization"),
}


@dataclass(frozen=True, kw_only=True)
class HarnessModel:
    """A model of lm-eval, with its arguments.

    Parameters
    ----------
    model : str
        lm-eval's kind of model: hf, vllm, local-completions, …
    model_args : str
        Its arguments, as pretrained=NAME,dtype=float32.
    use_cache : str, optional
        File in which lm-eval keeps each response.
    chat : bool, optional
        Metric exact-match: ask as chat messages (default: models whose name has chat).
    """

    model: str
    model_args: str = ""
    use_cache: str | None = None
    chat: bool | None = None

    @cached_property
    def _arguments(self) -> dict[str, str]:
        keep_secrets(self.model_args)
        return dict(part.partition("=")[::2] for part in self.model_args.split(",") if part)

    @property
    def name(self) -> str:
        """The model's own name if its arguments have one."""
        return next((self._arguments[key] for key in NAMES if self._arguments.get(key)), self.model)

    @property
    def asks_as_chat(self) -> bool:
        """Whether exact-match asks through the model's chat template."""
        return "chat" in self.model if self.chat is None else self.chat

    @property
    def one_by_one(self) -> bool:
        """Whether each option of a question takes a request of its own."""
        return self.model not in ONE_PROMPT

    def facts(self, metric: str) -> dict[str, str]:
        """Return what the answers depend on, besides the design."""
        facts = {"model": self.name, "lm-eval model": self.model}
        facts |= {
            f"model_args {key}": value
            for key, value in self._arguments.items()
            if key not in {*HOW, *NAMES}
        }
        if metric == "exact-match":  # only this metric supports chat
            facts["chat"] = "yes" if self.asks_as_chat else "no"
        return facts

    def load(self) -> Any:
        """Return the model with its cache; RunError if lm-eval cannot make it."""
        os.environ.setdefault("TQDM_DISABLE", "1")  # fewbench shows the progress
        from fewbench.runners.lm_eval.setup import Setup, cached, check_installed, make_model

        check_installed()
        arguments = import_module("lm_eval.utils").simple_parse_args_string(self.model_args)
        setup = Setup(model=self.model, model_args=arguments, use_cache=self.use_cache)
        return cached(make_model(setup), setup, setup.facts)

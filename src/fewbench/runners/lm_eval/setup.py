"""lm-eval's own arguments and model.

lm-eval's parser reads the arguments, so every option of a model works as in `lm-eval run`. Options
that decide which documents run, or with which prompts, are refused with the reason.
"""

import hashlib
import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from typing import Any

from fewbench._text import masked_arguments
from fewbench.errors import MissingExtraError, RunError, first_line
from fewbench.readers.harnesses.lm_eval.run_results import NAMES
from fewbench.runners.model_facts import of_weights

CHOOSES = "fewbench chooses the documents"
UNUSED = "fewbench does not use it"
REFUSED = {
    "limit": (CHOOSES, "give the number of items with -n"),
    "samples": (CHOOSES, "leave it out"),
    "cache_requests": (
        "lm-eval then gives chosen documents the prompts of the first documents of the task",
        "leave it out; --use_cache caches answers, for each model alone",
    ),
    "predict_only": ("answers would have no scores", "leave it out"),
    "output_path": ("logs are written to the folder of the run", "leave it out"),
    **dict.fromkeys(
        (
            *("check_integrity", "write_out", "show_config", "hf_hub_log_args"),
            "verbosity",
        ),
        (UNUSED, "leave it out"),
    ),
    **dict.fromkeys(
        ("wandb_args", "wandb_config_args", "trackio_args"),
        (
            "lm-eval would log means of the chosen documents, not the estimate",
            "leave it out, and log the estimate from Python (docs/how-to/trackers.md)",
        ),
    ),
}
SEEDS = [0, 1234, 1234, 1234]
OF_HF = {"accelerate", "peft", "torch", "transformers"}
"""What lm-eval's own extra hf installs."""


@dataclass(frozen=True)
class Setup:
    """Arguments of lm-eval that decide what a model answers, and how it is run.

    Attributes
    ----------
    model : str
        Name of the model class, such as `hf`; "" if the user gave a model object.
    model_args, gen_kwargs, metadata : dict
    seeds : list of int or None
        Seeds of Python, NumPy, torch and the few-shot sampler.
    tasks : list of str
        Tasks, groups, tags and patterns of a run without scores of source models.
    Others as the options of `lm-eval run`.
    """

    model: str = ""
    model_args: dict[str, Any] = field(default_factory=dict)
    num_fewshot: int | None = None
    system_instruction: str | None = None
    apply_chat_template: bool | str = False
    fewshot_as_multiturn: bool = False
    gen_kwargs: dict[str, Any] = field(default_factory=dict)
    seeds: list[int | None] = field(default_factory=lambda: list(SEEDS))
    metadata: dict[str, Any] = field(default_factory=dict)
    include_path: str | None = None
    confirm_run_unsafe_code: bool = False
    batch_size: int | str | None = None
    max_batch_size: int | None = None
    device: str | None = None
    use_cache: str | None = None
    tasks: list[str] = field(default_factory=list)

    @property
    def model_name(self) -> str | None:
        """The model's name as lm-eval finds it in the arguments, or None if they have none."""
        name = next((self.model_args[key] for key in NAMES if self.model_args.get(key)), None)
        return None if name is None else str(name)

    @property
    def target(self) -> str | None:
        """The default name of a target, or None for a model object."""
        return self.model_name or self.model or None

    @property
    def facts(self) -> dict[str, str]:
        """What answers depend on, as text, for what is set."""
        facts = asdict(self)
        for name in (
            "include_path",
            "batch_size",
            "max_batch_size",
            "device",
            "use_cache",
            "tasks",
        ):
            del facts[name]
        if self.metadata == self.model_args:  # lm-eval adds one to the other
            del facts["metadata"]
        texts = {name: str(value) for name, value in facts.items() if value not in (None, {}, "")}
        return texts | of_weights(
            str(self.model_args[key]) for key in NAMES if key in self.model_args
        )


def check_installed() -> None:
    """Raise MissingExtraError without lm-eval 0.4.12, RunError if it cannot be imported."""
    if find_spec("lm_eval") is None:
        raise MissingExtraError(
            "lm-eval is not installed", hint='install it with pip install "fewbench[lm-eval]"'
        )
    try:
        from lm_eval.evaluator import TaskManager
    except Exception as error:  # such as the wrong version of a library
        raise RunError(
            f"lm-eval cannot be imported: {type(error).__name__}: {first_line(error)}",
            hint="update it with pip install -U lm-eval, or install the library versions it needs",
        ) from error
    if not hasattr(TaskManager, "load"):
        raise MissingExtraError(
            "lm-eval is older than 0.4.12", hint="update it with pip install -U lm-eval"
        )


def parse(arguments: Sequence[str]) -> Setup:
    """Read arguments of `lm-eval run`.

    Raises
    ------
    RunError
        If lm-eval does not accept them, or one decides what fewbench decides.
    MissingExtraError
        If lm-eval is not installed.
    """
    check_installed()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    words = list(arguments)
    if words[:1] == ["run"]:
        words = words[1:]
    output = io.StringIO()
    try:
        with redirect_stderr(output), redirect_stdout(output):
            return _parsed(words)
    except SystemExit as stopped:
        if not stopped.code:  # --help
            print(output.getvalue(), end="")
            raise
        lines = output.getvalue().strip().splitlines() or ["no reason given"]
        why = lines[-1].partition("error: ")[2] or lines[-1]
        raise RunError(
            f"lm-eval does not accept its arguments: {masked_arguments(why)}",
            hint="see lm-eval run --help",
        ) from None
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise RunError(
            f"lm-eval does not accept its arguments: {first_line(error)}",
            hint="see lm-eval run --help",
        ) from error


def _parsed(arguments: list[str]) -> Setup:
    from lm_eval._cli.harness import HarnessCLI
    from lm_eval.config.evaluate_config import EvaluatorConfig

    named = HarnessCLI()._parser.parse_args(["run", *arguments])
    _refuse(vars(named))
    vars(named).pop("log_samples", None)  # samples are logged anyway, and not to --output_path
    config = EvaluatorConfig.from_cli(named)
    config.log_samples = False
    _refuse(vars(named) | {name: getattr(config, name, None) for name in REFUSED})
    seeds = config.seed
    if not isinstance(seeds, list):  # from a file, before 0.4.13
        seeds = [seeds] * len(SEEDS)
    names = {field.name for field in fields(Setup)} - {"seeds", "tasks"}
    values = {name: getattr(config, name) for name in names}
    values = {name: value for name, value in values.items() if value not in (None, "")}
    return Setup(**values, seeds=seeds, tasks=_names(config.tasks))


def _names(tasks: str | Sequence[str] | None) -> list[str]:
    """Return the comma-separated names of tasks."""
    listed = [tasks] if isinstance(tasks, str) else tasks or []
    names = [name.strip() for listed_names in listed for name in listed_names.split(",")]
    return list(dict.fromkeys(filter(None, names)))


def _refuse(named: Mapping[str, Any]) -> None:
    """Raise RunError for an option that fewbench does not let through."""
    for name, (why, hint) in REFUSED.items():
        value = named.get(name)
        if value is not None and value is not False and value not in ("", {}, []):
            raise RunError(f"lm-eval's --{name} is not accepted: {why}", hint=hint)


def seed_all(setup: Setup) -> None:
    """Seed all generators, as lm-eval does before it makes the model and reads documents.

    Tasks that shuffle the options of a question do so by Python's generator.
    """
    import random

    import numpy as np

    python, numpy, torch_seed, _ = setup.seeds
    if python is not None:
        random.seed(python)
    if numpy is not None:
        np.random.seed(numpy)  # noqa: NPY002
    if torch_seed is not None and find_spec("torch") is not None:
        import torch

        torch.manual_seed(torch_seed)


@contextmanager
def own_generators() -> Iterator[None]:
    """Give the caller's generators of Python, NumPy and torch back as they were.

    Torch's only if it is imported before; a GPU's are among them.
    """
    import random

    import numpy as np

    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch = sys.modules.get("torch")
    cpu = None if torch is None else torch.get_rng_state()
    gpus = torch.cuda.get_rng_state_all() if torch and torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        if torch is not None:
            torch.set_rng_state(cpu)
            if gpus is not None:
                torch.cuda.set_rng_state_all(gpus)


def make_model(setup: Setup) -> Any:
    """Make the model of the arguments, once; RunError if lm-eval cannot."""
    from lm_eval.api.registry import get_model

    try:
        return get_model(setup.model).create_from_arg_obj(
            dict(setup.model_args),
            {
                "batch_size": setup.batch_size,
                "max_batch_size": setup.max_batch_size,
                "device": setup.device,
            },
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"lm-eval's model {setup.model!r} needs {error.name}, which is not installed",
            hint='pip install "lm-eval[hf]"'
            if error.name in OF_HF
            else f"pip install {error.name}",
        ) from error
    except Exception as error:  # of any library that a model needs
        raise RunError(
            f"lm-eval cannot make the model {setup.model!r}: {first_line(error)}",
            hint="try lm-eval run --limit 1 with the same model and arguments",
        ) from error


def cached(model: Any, setup: Setup, facts: Mapping[str, str]) -> Any:
    """Return the model with lm-eval's cache of answers if --use_cache names one."""
    if setup.use_cache is None:
        return model
    from lm_eval.api.model import CachingLM

    return CachingLM(model, cached_in(setup.use_cache, facts))


def cached_in(path: str, facts: Mapping[str, str]) -> str:
    """Return the file of a model's answers, of which `facts` are how the model is run.

    lm-eval looks answers up by the request alone, so models must not share a file.
    """
    text = "\n".join(f"{name}={value}" for name, value in sorted(facts.items()))
    whose = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{path}_{whose}_rank0.db"

"""Options that messages name, and the commands that have them."""

import re

from fewbench.cli.app import COMMANDS, load_command

SAYS = ("fewbench: error:", "note:", "warning:")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*\w")
# Options of lm-eval, lighteval, OpenCompass, VLMEvalKit, Inspect, Dask and Ray that messages name.
OTHERS = {
    *("--samples", "--log_samples", "--output_path", "--cache_requests", "--use_cache", "--limit"),
    *("--model_args", "--include_path", "--confirm_run_unsafe_code", "--tasks", "--save-details"),
    *("--mode", "--reuse", "--dump-eval-details", "--sample-id", "--sample-shuffle", "--no-score"),
    *("--max-samples", "--epochs", "--max-connections", "--retry-on-error", "--model-base-url"),
    *("--no-log-samples", "--detach", "--log-dir", "--nthreads", "--head", "--address"),
    *("--max-retries", "--max-tokens", "--attempt-timeout", "--api-key", "--model-cost-config"),
    "--prompt",  # of a program in an example
}


def options_of(words) -> set[str]:
    """Return the options of the command that the words begin with."""
    found, command = {"--help", "--version"}, None
    for word in map(str, words):
        below = (COMMANDS if command is None else getattr(command, "commands", {})).get(word)
        if below is None:
            break
        command = load_command(word) if command is None else below
        found |= own_options(command)
    for below in getattr(command, "commands", {}).values():  # pack SCORES is pack make SCORES
        found |= own_options(below)
    return found


def own_options(command) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)}


def check_options(words, said: str) -> None:
    """Every option that a command's error names is its own, or the error says of which command."""
    own = options_of(words) | OTHERS | {str(word) for word in words}
    said = "\n".join(line for line in said.splitlines() if line.startswith(SAYS))
    said = re.sub(r"\s--\s.*", "", said)  # what follows is passed to other programs
    for option in set(OPTION.findall(said)) - own:
        named = re.findall(r"fewbench ((?:\w+ ?)+)", said) + re.findall(r"\b(\w+) --", said)
        named += ["import"] if "import" in said else []
        assert any(option in options_of(one.split()) for one in named), f"{option} in {said}"

"""Help that people can read: whole summaries, and kinds of values in words."""

import re
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# The base of usage errors: typer's class, or click's in older releases.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
KINDS = {
    "int": "NUMBER", "float": "NUMBER", "range": "NUMBER", "Path": "PATH", "path": "PATH",
    "str": "TEXT",
}  # fmt: skip
"""What is typed for a type, as typer writes it in <>."""
NAMED = {"budget": "ITEMS", "budgets": "ITEMS", "method": "METHOD", "methods": "METHODS"}
"""What is typed for a parameter, if its name is clearer than its type."""
TYPE = re.compile(r"<(?:list\[)?([^<>\]]*?)\]?>$")


def in_words(name: str, parameter: Any) -> str:
    """Return the first column of a parameter's line of help.

    Examples
    --------
    >>> option, argument = (type("", (), {"param_type_name": kind, "name": "level"})
    ...                     for kind in ("option", "argument"))
    >>> in_words("--level <float>", option), in_words("SCORES <list[Path]>", argument)
    ('--level NUMBER', 'SCORES')
    >>> in_words("--average <micro|macro>", option), in_words("--tries <int range>", option)
    ('--average micro|macro', '--tries NUMBER')
    """
    kind = TYPE.search(name)
    if kind is None:
        return name
    if parameter.param_type_name == "argument":
        return name[: kind.start()].rstrip()
    words = kind[1].split()[-1] if kind[1] else ""
    if "|" not in words:
        words = NAMED.get(parameter.name) or KINDS.get(words, words.upper())
    return name[: kind.start()] + words


def _ends(text: str) -> str:
    """Write the range of a number in words."""
    text = re.sub(r"(\S+)<=x<=(\S+)\]$", r"\1 to \2]", text)
    return re.sub(r"x>=(\S+)\]$", r"at least \1]", text)


class PlainCommand(TyperCommand):
    """A command whose help has no names of Python types."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; a usage error for two methods where there can be one.

        If other options are given twice, the last one counts, as in most programs.
        """
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        if [option.name for option in given].count("method") > 1:
            raise typer.BadParameter("--method is given twice", ctx)
        return list(super().parse_args(ctx, args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line; needed arguments stand without brackets."""
        return [re.sub(r"[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        titles: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                title = f"{parameter.param_type_name.capitalize()}s"
                titles[title].append((in_words(record[0], parameter), _ends(record[1])))
        for title, records in titles.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class ListedGroup(TyperGroup):
    """A group that lists its commands by subject, with whole summaries."""

    def added(self) -> Mapping[str, Any]:
        """Return the commands that packages add, by name."""
        return {}

    def subject(self, name: str) -> str:
        """Return the heading that a command is listed under."""
        return "Commands"

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; those of packages are looked for if there is no other."""
        return super().get_command(ctx, cmd_name) or self.added().get(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*super().list_commands(ctx), *self.added()]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each subject."""
        commands = {**self.commands, **self.added()}
        wide = max(map(len, commands))
        for subject in dict.fromkeys(map(self.subject, commands)):
            with formatter.section(subject):
                formatter.write_dl(
                    [
                        (name.ljust(wide), _summary(command))
                        for name, command in commands.items()
                        if self.subject(name) == subject
                    ]
                )


def _summary(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


class Commands(typer.Typer):
    """A group of commands made from functions."""

    def __init__(self, cls: type[TyperGroup] = ListedGroup) -> None:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        super().__init__(
            cls=cls, no_args_is_help=True, rich_markup_mode=None, context_settings=settings
        )

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return a decorator that adds a command."""
        return super().command(name, **{"cls": PlainCommand, **settings})

"""What a package that extends fewbench uses beside the modules of its subject.

Names, texts, types, seeds and files, as fewbench's own modules use them: messages then read alike,
and files are written alike. docs/extend.md shows what a package adds.
"""

from fewbench._blocks import Matrix, by_columns, is_large, row_blocks, total, whole
from fewbench._content import other_separator, refuse_pointer, text_encoding, why_not_utf8
from fewbench._files import only_process, written_whole
from fewbench._journal import Lines, checked
from fewbench._json import Frozen, first_mistake, loads, parse_json
from fewbench._lazy import pandas
from fewbench._memory import check_arrays_memory, check_parquet, check_unpacked, check_zip
from fewbench._names import counted, did_you_mean, fixed, p_value, some, split_names
from fewbench._progress import OnStep
from fewbench._seeds import child_seed
from fewbench._text import as_note, echo, keep_secrets, quoted, say, say_note
from fewbench._threads import one_thread
from fewbench._types import BoolArray, FloatArray, IntArray
from fewbench._warned import in_cell

__all__ = [
    "BoolArray",
    "FloatArray",
    "Frozen",
    "IntArray",
    "Lines",
    "Matrix",
    "OnStep",
    "as_note",
    "by_columns",
    "check_arrays_memory",
    "check_parquet",
    "check_unpacked",
    "check_zip",
    "checked",
    "child_seed",
    "counted",
    "did_you_mean",
    "echo",
    "first_mistake",
    "fixed",
    "in_cell",
    "is_large",
    "keep_secrets",
    "loads",
    "one_thread",
    "only_process",
    "other_separator",
    "p_value",
    "pandas",
    "parse_json",
    "quoted",
    "refuse_pointer",
    "row_blocks",
    "say",
    "say_note",
    "some",
    "split_names",
    "text_encoding",
    "total",
    "whole",
    "why_not_utf8",
    "written_whole",
]

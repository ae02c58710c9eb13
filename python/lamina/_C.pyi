"""The compiled part: operators, and what they work on."""

from collections.abc import Callable
from typing import Any

from lamina._border import *
from lamina._ops import *

_submodule_functions: dict[str, dict[str, Callable[..., Any]]]

def __getattr__(name: str) -> Any: ...  # names with an underscore are the package's own

"""Base classes that packages ask for with isinstance."""

import functools
from typing import TypeVar

from lamina.utils.data.dataset import Dataset, IterableDataset

_T_co = TypeVar("_T_co", covariant=True)


class _Functional:
    """Functions that ``functional_datapipe`` adds: ``pipe.name(...)`` makes another pipe of this one."""

    functions: dict = {}

    def __getattr__(self, name):
        maker = type(self).functions.get(name)
        if maker is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.partial(maker, self)

    @classmethod
    def register_function(cls, function_name, function):
        """Let every pipe of this kind have a function."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name, cls_to_register, enable_df_api_tracing=False
    ):
        """Let every pipe of this kind have a function that makes a pipe of a class."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )
        cls.functions[function_name] = cls_to_register

    def __repr__(self):
        return type(self).__qualname__

    __str__ = __repr__


class IterDataPipe(_Functional, IterableDataset[_T_co]):
    """An iterable dataset that may be chained with others."""

    functions: dict = {}


class MapDataPipe(_Functional, Dataset[_T_co]):
    """A dataset of numbered samples that may be chained with others."""

    functions: dict = {}


class DFIterDataPipe(IterDataPipe):
    """An iterable dataset of data frames."""


class functional_datapipe:
    """Decorator: pipes get a function of that name that makes one of the decorated class."""

    def __init__(self, name, enable_df_api_tracing=False):
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls):
        kind = MapDataPipe if issubclass(cls, MapDataPipe) else IterDataPipe
        if not issubclass(cls, _Functional):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
        kind.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        return cls


class DataChunk(list):
    """A list of samples."""

    def __init__(self, items):
        super().__init__(items)
        self.items = items

    def raw_iterator(self):
        """The samples."""
        yield from self.items

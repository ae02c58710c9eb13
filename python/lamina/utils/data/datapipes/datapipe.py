"""Base classes that packages ask for with isinstance."""

from typing import TypeVar

from lamina.utils.data.dataset import Dataset, IterableDataset

_T_co = TypeVar("_T_co", covariant=True)


class IterDataPipe(IterableDataset[_T_co]):
    """An iterable dataset that may be chained with others."""


class MapDataPipe(Dataset[_T_co]):
    """A dataset of numbered samples that may be chained with others."""


class DFIterDataPipe(IterDataPipe):
    """An iterable dataset of data frames."""


class DataChunk(list):
    """A list of samples."""

    def __init__(self, items):
        super().__init__(items)
        self.items = items

    def raw_iterator(self):
        """The samples."""
        yield from self.items

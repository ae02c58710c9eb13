"""Modules over several devices. There is one device here, so each call is a call of the module."""

from lamina.nn.parallel.data_parallel import DataParallel, data_parallel
from lamina.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

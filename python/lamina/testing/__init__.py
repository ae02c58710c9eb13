"""Comparing tensors in tests."""

from lamina.testing._comparison import assert_close

__all__ = ["assert_close"]

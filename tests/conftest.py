"""Shared set-up of the Python tests."""

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def planted_fault():
    """Read past the end of a buffer when the sanitizer job asks for it (it has to turn red)."""
    if os.environ.get("LAMINA_PLANTED_FAULT"):
        import lamina

        lamina._C._planted_fault()

"""What data loaders are made of: collating, fetching, worker processes."""

import sys

from lamina._utils import ExceptionWrapper  # noqa: F401

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks at processes that should be alive
IS_WINDOWS = sys.platform == "win32"

from . import collate, fetch, pin_memory, signal_handling, worker  # noqa: E402, F401

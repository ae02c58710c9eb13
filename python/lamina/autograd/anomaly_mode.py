"""Anomaly mode: errors in backward tell which line of the forward pass they come from."""

import traceback
import warnings

from lamina._C import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:  # noqa: N801
    """Turns anomaly mode on or off at once, and back at the end of the block it may be used for.

    Parameters
    ----------
    mode : bool
        On or off.
    check_nan : bool
        Whether a NaN in a gradient is an error.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception) -> None:
        set_anomaly_enabled(*self._before)


class detect_anomaly:  # noqa: N801
    """A block in which every recorded call notes its line; slow, for looking for faults.

    A backward that fails warns with the lines of the forward call of the failing node; a gradient
    with NaN is an error; the error about a tensor written in place shows the line that wrote it.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        set_anomaly_enabled(True, self._check_nan)

    def __exit__(self, *exception) -> None:
        set_anomaly_enabled(*self._before)


def _note(parent) -> dict:
    """What a node is to remember of the line that makes it; the border calls this."""
    return {"traceback_": traceback.format_stack()[:-1], "parent_": parent}


def _describe(noted: dict) -> str:
    return "".join(noted["traceback_"])


def _warn(name: str, noted) -> None:
    """Warn of a failing node, and of the nodes in whose backward it was made."""
    depth = 0
    while True:
        lines = noted.get("traceback_") if noted else None
        what = (
            f"Error detected in {name}. "
            if depth == 0
            else f"\n\nPrevious calculation was induced by {name}. "
        )
        if lines is None:
            warnings.warn(
                what + "No forward pass information available. Enable detect anomaly during "
                "forward pass for more information.",
                stacklevel=2,
            )
            return
        warnings.warn(
            what
            + (
                "Traceback of forward call that caused the error:\n"
                if depth == 0
                else "Traceback of forward call that induced the previous calculation:\n"
            )
            + "".join(lines),
            stacklevel=2,
        )
        parent = noted.get("parent_")
        if parent is None:
            return
        name, noted, depth = parent.name(), parent.metadata, depth + 1

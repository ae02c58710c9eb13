"""How losses spell their reduction."""

from __future__ import annotations

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(op: str, reduction: str, size_average: bool | None, reduce: bool | None) -> int:
    """The operator's number for `reduction`; the two flags of old programs win where given."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            return 0
        return 1 if size_average is None or size_average else 2
    try:
        return _REDUCTIONS[reduction]
    except KeyError:
        raise ValueError(
            f"{op}: {reduction} is not a valid value for reduction; expected none, mean or sum"
        ) from None

"""Names for annotations."""

from lamina._C import Size, Tensor, device, dtype

Number = int | float | bool
Device = device | str | int | None
_size = Size | list[int] | tuple[int, ...]
_dtype = dtype
_TensorOrTensors = Tensor | tuple[Tensor, ...]

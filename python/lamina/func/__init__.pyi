"""Function transforms, with their types."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from lamina import Tensor
from lamina.nn.modules.module import Module

_F = TypeVar("_F", bound=Callable[..., Any])
_M = TypeVar("_M", bound=Module)

# Where samples lie: an int, None, or a structure of them like that of the arguments or results.
_Dims = int | None | tuple[Any, ...] | list[Any] | dict[Any, Any]
_Argnums = int | tuple[int, ...]

def vmap(
    func: Callable[..., Any],
    in_dims: _Dims = ...,
    out_dims: _Dims = ...,
    randomness: Literal["error", "different", "same"] = ...,
    *,
    chunk_size: int | None = ...,
) -> Callable[..., Any]: ...
def grad(
    func: Callable[..., Any], argnums: _Argnums = ..., has_aux: bool = ...
) -> Callable[..., Any]: ...
def grad_and_value(
    func: Callable[..., Any], argnums: _Argnums = ..., has_aux: bool = ...
) -> Callable[..., tuple[Any, Any]]: ...
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = ...) -> tuple[Any, ...]: ...
def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = ...,
    has_aux: bool = ...,
) -> tuple[Any, ...]: ...
def jacrev(
    func: Callable[..., Any],
    argnums: _Argnums = ...,
    *,
    has_aux: bool = ...,
    chunk_size: int | None = ...,
    _preallocate_and_copy: bool = ...,
) -> Callable[..., Any]: ...
def jacfwd(
    func: Callable[..., Any],
    argnums: _Argnums = ...,
    has_aux: bool = ...,
    *,
    randomness: Literal["error", "different", "same"] = ...,
) -> Callable[..., Any]: ...
def hessian(func: Callable[..., Any], argnums: _Argnums = ...) -> Callable[..., Any]: ...
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]: ...
def functionalize(func: _F, *, remove: Literal["mutations", "mutations_and_views"] = ...) -> _F: ...
def debug_unwrap(tensor: Tensor, *, recurse: bool = ...) -> Tensor: ...
def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor: ...
def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = ...,
    kwargs: dict[str, Any] | None = ...,
    *,
    tie_weights: bool = ...,
    strict: bool = ...,
) -> Any: ...
def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Any], dict[str, Any]]: ...
def replace_all_batch_norm_modules_(root: _M) -> _M: ...

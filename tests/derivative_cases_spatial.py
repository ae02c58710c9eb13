"""The cases of derivative_cases.py for convolution, pooling, padding and resampling."""

import lamina

F64 = lamina.float64


def spatial_cases(dtype, case, shaped):
    """`case(name, function, operands)` makes one; `shaped(dtype, *sizes)` the operands."""
    call = lamina._C._call_operator

    def of(name, *sizes, args=(), first=None, **kwargs):
        pick = (lambda r: r) if first is None else (lambda r: r[0])
        return case(
            f"aten::{name}",
            lambda *t: pick(call(f"aten::{name}", *t, *args, **kwargs)),
            shaped(dtype, *sizes),
        )

    lists = ([2, 1], [1, 0], [1, 1])
    for transposed, w in ((False, (2, 2, 2, 2)), (True, (2, 2, 2, 2))):
        rest = (*lists, transposed, [0, 0], 1)
        out = (1, 2, 2, 2) if not transposed else (1, 2, 4, 4)
        yield of("convolution", (1, 2, 3, 3), w, (2,), args=rest)
        yield of("_convolution_input_grad", out, w, args=([1, 2, 3, 3], *rest))
        yield of("_convolution_weight_grad", out, (1, 2, 3, 3), args=([2, 2, 2, 2], *rest))
        yield of("_convolution_bias_grad", out, (1, 2, 3, 3), w)
    yield of("constant_pad_nd", (2, 3), args=([1, -1, 2, 0], 0.5))
    pads = ([1, 2], [1, 1, 0, 1], [1, 0, 0, 1, 1, 1])
    sizes = ((2, 3), (2, 2, 3), (1, 2, 2, 3))
    for n in (1, 2, 3):
        yield of(
            f"reflection_pad{n}d",
            (*sizes[n - 1][:-1], 4),
            args=(pads[n - 1][:2] + [1] * (2 * n - 2),),
        )
        yield of(f"replication_pad{n}d", sizes[n - 1], args=(pads[n - 1],))
    yield of("_pad_circular", (2, 2, 3), args=([2, 1, 1, 0],))
    yield of("_border_pad_backward", (2, 3, 6), (2, 2, 3), args=([2, 1, 1, 0], 2))
    yield of("im2col", (1, 2, 3, 4), args=([2, 2], [1, 1], [0, 1], [1, 2]))
    yield of("col2im", (1, 4, 6), args=([3, 4], [2, 2], [1, 1], [0, 0], [1, 1]))
    yield of("pixel_shuffle", (1, 4, 2, 1), args=(2,))
    yield of("pixel_unshuffle", (1, 1, 4, 2), args=(2,))
    yield of("channel_shuffle", (1, 4, 2), args=(2,))
    yield of("channel_shuffle", (1, 6, 1, 2), args=(3,))
    if dtype != F64:
        return
    plane, volume = (1, 2, 4, 3), (1, 1, 3, 2, 4)
    yield of("max_pool2d_with_indices", plane, args=([2, 2], [1, 2], [0, 1]), first=True)
    yield of("max_pool3d_with_indices", volume, args=([2, 2, 2], [1, 1, 2]), first=True)
    places = lamina.tensor([[[[0, 5], [7, 11]], [[3, 3], [1, 2]]]])
    yield case(
        "aten::_max_pool_scatter",
        lambda g, x: call("aten::_max_pool_scatter", g, places, x, 2),
        shaped(dtype, (1, 2, 2, 2), plane),
    )
    yield of("adaptive_max_pool2d", plane, args=([2, 2],), first=True)
    yield of("adaptive_max_pool3d", volume, args=([2, 1, 3],), first=True)
    samples = lamina.full((1, 2, 2), 0.3, dtype=F64)
    yield of("fractional_max_pool2d", plane, args=([2, 1], [2, 2], samples), first=True)
    samples = lamina.full((1, 1, 3), 0.6, dtype=F64)
    yield of("fractional_max_pool3d", volume, args=([1, 1, 2], [2, 1, 2], samples), first=True)
    at = lamina.tensor([[[[0, 5], [7, 11]], [[3, 9], [1, 2]]]])
    yield of("max_unpool2d", (1, 2, 2, 2), args=(at, [4, 3]))
    yield of(
        "max_unpool3d", (1, 2, 1, 2, 2), args=(at.unsqueeze(2), [2, 3, 2], [1, 1, 1], [0, 0, 0])
    )
    average = ([2, 2], [2, 1], [1, 0], True, False, None)
    yield of("avg_pool2d", plane, args=average)
    yield of("avg_pool3d", volume, args=([2, 1, 2], [], [0, 0, 1], False, True, 3))
    yield of("_avg_pool_backward", (1, 2, 3, 2), plane, args=(*average, 2))
    yield of("_adaptive_avg_pool2d", plane, args=([3, 2],))
    yield of("_adaptive_avg_pool3d", volume, args=([2, 1, 3],))
    yield of("_adaptive_avg_pool_backward", (1, 2, 3, 2), plane, args=(2,))
    for n, x, size in ((1, (1, 2, 3), [5]), (2, plane, [3, 5]), (3, volume, [2, 3, 2])):
        yield of(f"upsample_nearest{n}d", x, args=(size,))
        yield of(f"_upsample_nearest_exact{n}d", x, args=(size,))
    for name, x, size in (
        ("upsample_linear1d", (1, 2, 3), [5]),
        ("upsample_bilinear2d", plane, [3, 5]),
        ("upsample_trilinear3d", volume, [2, 3, 2]),
        ("upsample_bicubic2d", plane, [3, 5]),
        ("_upsample_bilinear2d_aa", plane, [2, 2]),
        ("_upsample_bicubic2d_aa", plane, [2, 5]),
    ):
        yield of(name, x, args=(size, False))
    yield of(
        "_resample_backward",
        (1, 2, 3, 5),
        args=([3, 5], list(plane), 2, True, None, None, None),
    )
    for n, x in ((2, (1, 2, 3, 4)), (3, (1, 1, 2, 3, 2))):
        for mode, border in ((0, 0), (0, 2), (1, 1)):
            # Away from where a sample passes from one element to the next.
            yield case(
                f"aten::_grid_sample{n}d",
                lambda x, g, n=n, mode=mode, border=border: getattr(lamina, f"grid_sampler_{n}d")(
                    x, g * 0.7, mode, border, False
                ),
                shaped(dtype, x, (1,) + (2,) * n + (n,)),
            )

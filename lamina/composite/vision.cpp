// Resampling by mode, columns, and sampling at places in operators that have every derivative.
#include <cmath>

#include "lamina/autograd/engine.h"
#include "lamina/autograd/forward.h"
#include "lamina/autograd/mode.h"
#include "lamina/autograd/variable.h"
#include "lamina/core/error.h"
#include "lamina/cpu/resample.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/transforms/grad_level.h"

namespace lamina::composite {

using Scale = std::optional<double>;

Tensor resample(const Tensor& self, IntList size, int64_t mode, bool align, Scale d, Scale h,
                Scale w) {
  const auto n = size.size();
  switch (static_cast<cpu::Resample>(mode)) {
    case cpu::Resample::Nearest:
      return n == 1   ? ops::upsample_nearest1d(self, size, w)
             : n == 2 ? ops::upsample_nearest2d(self, size, h, w)
                      : ops::upsample_nearest3d(self, size, d, h, w);
    case cpu::Resample::NearestExact:
      return n == 1   ? ops::_upsample_nearest_exact1d(self, size, w)
             : n == 2 ? ops::_upsample_nearest_exact2d(self, size, h, w)
                      : ops::_upsample_nearest_exact3d(self, size, d, h, w);
    case cpu::Resample::Linear:
      return n == 1   ? ops::upsample_linear1d(self, size, align, w)
             : n == 2 ? ops::upsample_bilinear2d(self, size, align, h, w)
                      : ops::upsample_trilinear3d(self, size, align, d, h, w);
    case cpu::Resample::Cubic:
      return ops::upsample_bicubic2d(self, size, align, h, w);
    case cpu::Resample::AreaLinear:
      return ops::_upsample_bilinear2d_aa(self, size, align, h, w);
    default:
      return ops::_upsample_bicubic2d_aa(self, size, align, h, w);
  }
}

namespace {

// Exactly one of size and factors is given.
template <class F>
Tensor upsample_by(const Tensor& input, std::optional<IntList> size,
                   std::optional<ListView<double>> factors, const char* op, F&& f) {
  LAMINA_CHECK(size.has_value() != factors.has_value(), op,
               ": Must specify exactly one of output_size and scale_factors");
  if (size) return f(*size, Scale(), Scale());
  LAMINA_CHECK(factors->size() == 2 && input.dim() == 4, op,
               ": expected two scale_factors for an input of 4 dimensions; got ", input);
  const Sizes scaled{static_cast<int64_t>(static_cast<double>(input.sizes()[2]) * (*factors)[0]),
                     static_cast<int64_t>(static_cast<double>(input.sizes()[3]) * (*factors)[1])};
  return f(IntList(scaled), Scale((*factors)[0]), Scale((*factors)[1]));
}

}  // namespace

Tensor upsample_bilinear2d_aa_vec(const Tensor& input, std::optional<IntList> size, bool align,
                                  std::optional<ListView<double>> factors) {
  return upsample_by(input, size, factors, "_upsample_bilinear2d_aa",
                     [&](IntList s, Scale h, Scale w) {
                       return ops::_upsample_bilinear2d_aa(input, s, align, h, w);
                     });
}
Tensor upsample_bicubic2d_aa_vec(const Tensor& input, std::optional<IntList> size, bool align,
                                 std::optional<ListView<double>> factors) {
  return upsample_by(input, size, factors, "_upsample_bicubic2d_aa",
                     [&](IntList s, Scale h, Scale w) {
                       return ops::_upsample_bicubic2d_aa(input, s, align, h, w);
                     });
}

Tensor col2im_of_image(const Tensor& self, IntList input_size, IntList kernel, IntList dilation,
                       IntList padding, IntList stride) {
  LAMINA_CHECK(input_size.size() >= 2, "col2im: expected sizes (..., h, w); got ", input_size);
  const Sizes size{input_size[input_size.size() - 2], input_size[input_size.size() - 1]};
  return ops::col2im(self, size, kernel, dilation, padding, stride);
}

Tensor channel_unshuffle(const Tensor& self, int64_t groups) {
  LAMINA_CHECK(self.dim() >= 2 && groups > 0, "channel_shuffle: expected (n, c, ...); got ", self,
               " and ", groups, " groups");
  const int64_t channels = self.sizes()[1];
  return ops::channel_shuffle(self, channels == 0 ? 1 : channels / groups);
}

// ---- sampling at places ----
Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                    bool align) {
  return input.dim() == 5 ? ops::grid_sampler_3d(input, grid, mode, padding, align)
                          : ops::grid_sampler_2d(input, grid, mode, padding, align);
}
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                       bool align) {
  LAMINA_CHECK(input.dim() == 4, "grid_sampler_2d: expected 4D or 5D input; got ", input);
  if (autograd::forward::t_visible)
    return ops::_grid_sample_composed(input, grid, mode, padding, align);
  return ops::_grid_sample2d(input, grid, mode, padding, align);
}
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                       bool align) {
  LAMINA_CHECK(input.dim() == 5, "grid_sampler_3d: expected 5D input; got ", input);
  if (autograd::forward::t_visible)
    return ops::_grid_sample_composed(input, grid, mode, padding, align);
  return ops::_grid_sample3d(input, grid, mode, padding, align);
}

namespace {

Tensor less(const Tensor& a, double b) { return ops::lt(a, Scalar(b)); }

// Into the image by the rule of the border (1 border, 2 reflection); flat where the rule is.
Tensor into_image(Tensor x, int64_t padding, bool align, double size) {
  if (padding == 0) return x;
  if (padding == 2) {
    const double low = align ? 0 : -0.5, span = align ? size - 1 : size;
    if (span <= 0) return ops::zeros_like(x);
    const Tensor distance = ops::sub(x, Scalar(low));
    const Tensor away = ops::where(less(distance, 0), ops::neg(distance), distance);
    const Tensor flips = ops::detach(ops::floor(ops::div(away, Scalar(span))));
    const Tensor rest = ops::sub(away, ops::mul(flips, Scalar(span)));
    const Tensor odd = ops::ne(ops::remainder(flips, Scalar(2)), Scalar(0));
    x = ops::add(ops::where(odd, ops::sub(ops::full_like(rest, Scalar(span)), rest), rest),
                 Scalar(low));
  }
  const Tensor flat = ops::clamp(ops::detach(x), Scalar(0), Scalar(size - 1));
  const Tensor inside = ops::logical_and(ops::gt(x, Scalar(0)), less(x, size - 1));
  return ops::where(inside, x, ops::masked_fill(flat, ops::isnan(flat), Scalar(0)));
}

struct DimTap {
  Tensor index, valid, weight;  // weight undefined: 1
};

Tensor polynomial(const Tensor& t, double a, double b, double c, double d) {
  Tensor r = ops::add(ops::mul(t, Scalar(a)), Scalar(b));
  r = ops::add(ops::mul(r, t), Scalar(c));
  return ops::add(ops::mul(r, t), Scalar(d));
}

std::vector<DimTap> dim_taps(const Tensor& g, int64_t mode, int64_t padding, bool align,
                             int64_t size) {
  const auto extent = static_cast<double>(size);
  Tensor x = ops::where(ops::isnan(g), ops::full_like(g, Scalar(-1)), g);
  x = align ? ops::mul(ops::add(x, Scalar(1)), Scalar((extent - 1) / 2))
            : ops::sub(ops::mul(ops::add(x, Scalar(1)), Scalar(extent / 2)), Scalar(0.5));
  const auto tap = [&](const Tensor& at, const Tensor& weight) {
    const Tensor valid = ops::logical_and(ops::ge(at, Scalar(0)), less(at, extent));
    const Tensor safe = ops::masked_fill(at, ops::logical_not(valid), Scalar(0));
    return DimTap{ops::_to_dtype(ops::detach(safe), ScalarType::Int64), valid, weight};
  };
  if (mode == 2) {
    const Tensor low = ops::detach(ops::floor(x)), t = ops::sub(x, low);
    const Tensor u = ops::sub(ops::ones_like(t), t);
    const Tensor w[] = {polynomial(ops::add(t, Scalar(1)), -0.75, 3.75, -6, 3),
                        polynomial(t, 1.25, -2.25, 0, 1), polynomial(u, 1.25, -2.25, 0, 1),
                        polynomial(ops::add(u, Scalar(1)), -0.75, 3.75, -6, 3)};
    std::vector<DimTap> taps;
    for (int i = 0; i < 4; ++i)
      taps.push_back(tap(into_image(ops::add(low, Scalar(i - 1)), padding, align, extent), w[i]));
    return taps;
  }
  x = into_image(x, padding, align, extent);
  if (mode == 1) return {tap(ops::detach(ops::round(x)), Tensor())};
  const Tensor low = ops::detach(ops::floor(x)), t = ops::sub(x, low);
  return {tap(low, ops::sub(ops::ones_like(t), t)), tap(ops::add(low, Scalar(1)), t)};
}

}  // namespace

Tensor grid_sample_composed(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                            bool align) {
  LAMINA_CHECK((input.dim() == 4 || input.dim() == 5) && grid.dim() == input.dim() &&
                   grid.sizes()[0] == input.sizes()[0] && grid.sizes().back() == input.dim() - 2,
               "grid_sampler: expected input (n, c, spatial) and grid (n, ..., 2 or 3); got ",
               input, " and ", grid);
  LAMINA_CHECK(mode >= 0 && mode <= 2 && padding >= 0 && padding <= 2,
               "grid_sampler: expected modes 0 to 2; got interpolation_mode ", mode,
               " and padding_mode ", padding);
  const int64_t spatial = input.dim() - 2, n = input.sizes()[0], channels = input.sizes()[1];
  const Tensor places = ops::reshape(grid, {n, -1, spatial});
  std::vector<DimTap> dims[3];
  for (int64_t d = 0; d < spatial; ++d)
    dims[d] = dim_taps(ops::select(places, 2, d), mode, padding, align,
                       input.sizes()[static_cast<size_t>(input.dim() - 1 - d)]);
  if (spatial == 2) dims[2] = {DimTap{}};
  const Tensor flat = ops::flatten(input, 2, -1);
  const int64_t width = input.sizes().back();
  const int64_t height = input.sizes()[static_cast<size_t>(input.dim() - 2)];
  Tensor sum;
  for (const DimTap& z : dims[2])
    for (const DimTap& y : dims[1])
      for (const DimTap& x : dims[0]) {
        Tensor index = ops::add(ops::mul(y.index, Scalar(width)), x.index);
        Tensor valid = ops::logical_and(x.valid, y.valid);
        Tensor weight = x.weight.defined() ? ops::mul(x.weight, y.weight) : Tensor();
        if (z.index.defined()) {
          index = ops::add(index, ops::mul(z.index, Scalar(height * width)));
          valid = ops::logical_and(valid, z.valid);
          if (weight.defined()) weight = ops::mul(weight, z.weight);
        }
        const Tensor outside = ops::unsqueeze(ops::logical_not(valid), 1);
        index = ops::unsqueeze(ops::masked_fill(index, ops::logical_not(valid), Scalar(0)), 1);
        Tensor value = ops::gather(flat, 2, ops::expand(index, {n, channels, index.sizes()[2]}));
        value = ops::masked_fill(value, outside, Scalar(0));
        if (weight.defined())
          value = ops::mul(value, ops::masked_fill(ops::unsqueeze(weight, 1), outside, Scalar(0)));
        sum = sum.defined() ? ops::add(sum, value) : value;
      }
  Sizes sizes{n, channels};
  for (size_t i = 1; i + 1 < grid.sizes().size(); ++i) sizes.push_back(grid.sizes()[i]);
  return ops::reshape(sum, sizes);
}

namespace {

bool records(const Tensor& grad, const Tensor& input, const Tensor& grid) {
  return autograd::forward::t_visible || autograd::recording(grad, input, grid);
}

// The derivative of the composed form: it can be derived again.
Tensor composed_grad(const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t mode,
                     int64_t padding, bool align, const Tensor& by) {
  const bool again = autograd::grad_enabled();
  // Zero, and has the history of `t`.
  const auto zeroed = [](const Tensor& t) {
    return ops::masked_fill(t, ops::logical_not(ops::zeros_like(t)), Scalar(0));
  };
  if (mode == 1 && by.is_same(grid)) return zeroed(grid);
  const autograd::GradModeGuard on(true);
  const Tensor outputs[] = {grid_sample_composed(input, grid, mode, padding, align)};
  const Tensor inputs[] = {by}, grads[] = {grad};
  if (!outputs[0].requires_grad()) return ops::zeros_like(by);
  Tensor result = transforms::grad(TensorList(outputs, 1), TensorList(inputs, 1),
                                   TensorList(grads, 1), again, again, true)[0];
  if (!result.defined()) return ops::zeros_like(by);
  // Where it depends on nothing (nearest), its derivatives are zero, but there.
  if (again && !result.requires_grad()) return ops::add(result, zeroed(by));
  return result;
}

}  // namespace

Tensor grid_sample_input_grad(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                              int64_t mode, int64_t padding, bool align) {
  if (records(grad_output, input, grid) && input.requires_grad())
    return composed_grad(grad_output, input, grid, mode, padding, align, input);
  return ops::_grid_sample_input_grad_fused(grad_output, input, grid, mode, padding, align);
}

Tensor grid_sample_grid_grad(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                             int64_t mode, int64_t padding, bool align) {
  if (records(grad_output, input, grid) && grid.requires_grad())
    return composed_grad(grad_output, input, grid, mode, padding, align, grid);
  return ops::_grid_sample_grid_grad_fused(grad_output, input, grid, mode, padding, align);
}

Tensor affine_grid_generator(const Tensor& theta, IntList size, bool align) {
  const int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  LAMINA_CHECK(spatial == 2 || spatial == 3,
               "affine_grid_generator: needs 4d (spatial) or 5d (volumetric) sizes; got ", size);
  LAMINA_CHECK(theta.dim() == 3 && theta.sizes()[0] == size[0] && theta.sizes()[1] == spatial &&
                   theta.sizes()[2] == spatial + 1,
               "affine_grid_generator: Expected a batch of ", spatial,
               "D affine matrices of shape (", size[0], ", ", spatial, ", ", spatial + 1, "); got ",
               theta);
  std::vector<Tensor> columns;
  Sizes places{std::span<const int64_t>(size.data() + 2, static_cast<size_t>(spatial))};
  for (int64_t d = spatial - 1; d >= 0; --d) {
    const int64_t count = places[static_cast<size_t>(d)];
    Tensor line = count > 1 || !align
                      ? ops::linspace(Scalar(-1), Scalar(1), count, theta.dtype(), std::nullopt,
                                      theta.device())
                      : ops::zeros({count}, theta.dtype(), std::nullopt, theta.device());
    if (!align && count > 0)
      line =
          count == 1
              ? ops::zeros_like(line)
              : ops::mul(line, Scalar(static_cast<double>(count - 1) / static_cast<double>(count)));
    Sizes shape(static_cast<size_t>(spatial), 1);
    shape[static_cast<size_t>(d)] = count;
    columns.push_back(ops::expand(ops::view(line, shape), places));
  }
  columns.push_back(ops::ones(places, theta.dtype(), std::nullopt, theta.device()));
  const Tensor base = ops::reshape(ops::stack(columns, -1), {1, -1, spatial + 1});
  const Tensor grid = ops::bmm(ops::expand(base, {size[0], base.sizes()[1], spatial + 1}),
                               ops::transpose(theta, 1, 2));
  Sizes result{size[0]};
  for (const int64_t s : places) result.push_back(s);
  result.push_back(spatial);
  return ops::view(grid, result);
}

}  // namespace lamina::composite

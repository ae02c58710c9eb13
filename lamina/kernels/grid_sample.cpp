// Sampling at places, by cpu/grid_sample.
#include "lamina/cpu/grid_sample.h"

#include "lamina/generated/declarations.h"
#include "lamina/kernels/spatial.h"

namespace lamina::kernels {

namespace {

cpu::GridSample problem(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                        bool align_corners) {
  cpu::GridSample s;
  s.spatial = input.dim() - 2;
  s.batch = input.sizes()[0];
  s.channels = input.sizes()[1];
  s.places = 1;
  for (size_t i = 1; i + 1 < grid.sizes().size(); ++i) s.places *= grid.sizes()[i];
  s.size = Planes(input.sizes(), s.spatial).size;
  s.mode = static_cast<cpu::Sample>(mode);
  s.border = static_cast<cpu::SampleBorder>(padding);
  s.align_corners = align_corners;
  return s;
}

}  // namespace

void grid_sample(const Tensor& result, const Tensor& input, const Tensor& grid, int64_t mode,
                 int64_t padding, bool align_corners) {
  if (result.numel() == 0) return;
  const Tensor x = dense_values(input), g = dense_values(grid);
  const DenseResult out(result, x.dtype());
  by_real(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::grid_sample<T>(problem(input, grid, mode, padding, align_corners), x.data_as<T>(),
                        g.data_as<T>(), out.tensor().data_as<T>());
  });
  out.finish();
}

void grid_sample_input_grad(const Tensor& result, const Tensor& grad_output, const Tensor& input,
                            const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  if (result.numel() == 0 || grad_output.numel() == 0) return zero_bytes(result);
  const Tensor gy = dense_values(grad_output), g = dense_values(grid);
  const DenseResult out(result, gy.dtype());
  by_real(gy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::grid_sample_input_grad<T>(problem(input, grid, mode, padding, align_corners),
                                   gy.data_as<T>(), g.data_as<T>(), out.tensor().data_as<T>());
  });
  out.finish();
}

void grid_sample_grid_grad(const Tensor& result, const Tensor& grad_output, const Tensor& input,
                           const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  if (result.numel() == 0 || grad_output.numel() == 0) return zero_bytes(result);
  const Tensor gy = dense_values(grad_output), x = dense_values(input), g = dense_values(grid);
  const DenseResult out(result, gy.dtype());
  by_real(gy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::grid_sample_grid_grad<T>(problem(input, grid, mode, padding, align_corners),
                                  gy.data_as<T>(), x.data_as<T>(), g.data_as<T>(),
                                  out.tensor().data_as<T>());
  });
  out.finish();
}

}  // namespace lamina::kernels

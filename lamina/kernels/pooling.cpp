// Pooling, by cpu/pool, and the way back from the places of largest elements.
#include "lamina/cpu/pool.h"

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/spatial.h"
#include "lamina/queue/parallel.h"
#include "lamina/shape/pooling.h"

namespace lamina::kernels {

namespace {

cpu::PoolSizes sizes_of(const PoolGeometry& g, IntList input) {
  return {Planes(input, g.spatial).planes,
          g.input,
          g.output,
          g.kernel,
          g.stride,
          g.padding,
          g.dilation};
}

cpu::PoolSizes sizes_of(IntList input, IntList output, int64_t spatial) {
  cpu::PoolSizes s;
  const Planes in(input, spatial);
  s.planes = in.planes;
  s.input = in.size;
  s.output = Planes(output, spatial).size;
  return s;
}

// The spatial dimensions of a pooled tensor and what its kernels were given.
void max_pool_any(const Tensor& out, const Tensor* indices, const Tensor& self, int64_t spatial,
                  IntList kernel, IntList stride, IntList padding, IntList dilation,
                  bool ceil_mode) {
  if (out.numel() == 0) return;
  const cpu::PoolSizes s = sizes_of(pool_geometry(self.sizes(), spatial, kernel, stride, padding,
                                                  dilation, ceil_mode, "max_pool"),
                                    self.sizes());
  const Tensor in = dense_values(self);
  const DenseResult values(out, in.dtype());
  visit(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr ((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)) {
      if (indices) {
        const DenseResult places(*indices);
        cpu::max_pool<T>(s, in.data_as<T>(), values.tensor().data_as<T>(),
                         places.tensor().data_as<int64_t>());
        places.finish();
      } else {
        cpu::max_pool<T>(s, in.data_as<T>(), values.tensor().data_as<T>(), nullptr);
      }
    }
  });
  values.finish();
}

}  // namespace

void max_pool2d(const Tensor& out, const Tensor& indices, const Tensor& self, IntList kernel,
                IntList stride, IntList padding, IntList dilation, bool ceil_mode) {
  max_pool_any(out, &indices, self, 2, kernel, stride, padding, dilation, ceil_mode);
}
void max_pool3d(const Tensor& out, const Tensor& indices, const Tensor& self, IntList kernel,
                IntList stride, IntList padding, IntList dilation, bool ceil_mode) {
  max_pool_any(out, &indices, self, 3, kernel, stride, padding, dilation, ceil_mode);
}
void max_pool_values(const Tensor& out, const Tensor& self, IntList kernel, IntList stride,
                     IntList padding, IntList dilation, bool ceil_mode) {
  max_pool_any(out, nullptr, self, static_cast<int64_t>(kernel.size()), kernel, stride, padding,
               dilation, ceil_mode);
}

void adaptive_max_pool(const Tensor& out, const Tensor& indices, const Tensor& self,
                       IntList output) {
  if (out.numel() == 0) return;
  const auto spatial = static_cast<int64_t>(output.size());
  const cpu::PoolSizes s = sizes_of(self.sizes(), out.sizes(), spatial);
  const Tensor in = dense_values(self);
  const DenseResult values(out, in.dtype()), places(indices);
  by_real(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::adaptive_max_pool<T>(s, in.data_as<T>(), values.tensor().data_as<T>(),
                              places.tensor().data_as<int64_t>());
  });
  values.finish();
  places.finish();
}

void fractional_max_pool(const Tensor& out, const Tensor& indices, const Tensor& self,
                         IntList kernel, IntList output, const Tensor& random_samples) {
  if (out.numel() == 0) return;
  const auto spatial = static_cast<int64_t>(output.size());
  cpu::PoolSizes s = sizes_of(self.sizes(), out.sizes(), spatial);
  for (size_t i = 0; i < output.size(); ++i)
    s.kernel[3 - output.size() + i] = kernel[kernel.size() == 1 ? 0 : i];
  const Tensor in = dense_values(self);
  // One row of samples for each plane; those past the input are left out.
  const bool batched = self.dim() == spatial + 2;
  Sizes wanted{batched ? self.sizes()[0] : 1, self.sizes()[batched ? 1 : 0], spatial};
  const Tensor samples = dense_values(alias_window(random_samples, wanted, random_samples.strides(),
                                                   random_samples.storage_offset()));
  const DenseResult values(out, in.dtype()), places(indices);
  by_real(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::fractional_max_pool<T>(s, spatial, samples.data_as<T>(), in.data_as<T>(),
                                values.tensor().data_as<T>(), places.tensor().data_as<int64_t>());
  });
  values.finish();
  places.finish();
}

namespace {

// to[plane][index] += or = from, with indices that the caller may have made up.
template <class T, class F>
void scatter_planes(int64_t planes, int64_t count, int64_t size, const int64_t* indices,
                    const T* from, T* to, const char* op, F&& put) {
  queue::parallel_for(0, planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, count + size)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t p = begin; p < end; ++p) {
                          T* plane = to + p * size;
                          std::fill_n(plane, size, T(0));
                          for (int64_t i = p * count; i < (p + 1) * count; ++i) {
                            const int64_t at = indices[i];
                            LAMINA_CHECK(at >= 0 && at < size, op,
                                         ": Found an invalid max index: ", at, " (the plane has ",
                                         size, " elements)");
                            put(plane[at], from[i]);
                          }
                        }
                      });
}

void unpool(const Tensor& result, const Tensor& self, const Tensor& indices, int64_t spatial,
            const char* op) {
  if (result.numel() == 0 || self.numel() == 0) return zero_bytes(result);
  const Planes large(result.sizes(), spatial), small(self.sizes(), spatial);
  const Tensor in = dense_values(self), places = contiguous_values(indices);
  const DenseResult out(result, in.dtype());
  visit(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr ((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>))
      scatter_planes<T>(small.planes, small.count(), large.count(), places.data_as<int64_t>(),
                        in.data_as<T>(), out.tensor().data_as<T>(), op,
                        [](T& to, T from) { to = from; });
  });
  out.finish();
}

}  // namespace

void max_pool_scatter(const Tensor& result, const Tensor& grad_output, const Tensor& indices,
                      const Tensor&, int64_t spatial) {
  if (result.numel() == 0 || grad_output.numel() == 0) return zero_bytes(result);
  const Planes large(result.sizes(), spatial), small(grad_output.sizes(), spatial);
  const Tensor grad = dense_values(grad_output), places = contiguous_values(indices);
  const DenseResult out(result, grad.dtype());
  by_real(grad.dtype(), [&](auto zero) {
    using T = decltype(zero);
    scatter_planes<T>(small.planes, small.count(), large.count(), places.data_as<int64_t>(),
                      grad.data_as<T>(), out.tensor().data_as<T>(), "max_pool_backward",
                      [](T& to, T from) { to += from; });
  });
  out.finish();
}

void max_unpool2d(const Tensor& result, const Tensor& self, const Tensor& indices, IntList) {
  unpool(result, self, indices, 2, "max_unpool2d");
}
void max_unpool3d(const Tensor& result, const Tensor& self, const Tensor& indices, IntList, IntList,
                  IntList) {
  unpool(result, self, indices, 3, "max_unpool3d");
}

namespace {

void avg_pool_any(const Tensor& result, const Tensor& self, IntList kernel, IntList stride,
                  IntList padding, bool ceil_mode, bool include_pad, std::optional<int64_t> divisor,
                  int64_t spatial) {
  if (result.numel() == 0) return;
  const cpu::PoolSizes s = sizes_of(
      pool_geometry(self.sizes(), spatial, kernel, stride, padding, {1}, ceil_mode, "avg_pool"),
      self.sizes());
  const cpu::PoolDivisor d{include_pad, divisor.value_or(0)};
  const Tensor in = dense_values(self);
  const DenseResult out(result, in.dtype());
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    cpu::avg_pool<T>(s, d, in.data_as<T>(), out.tensor().data_as<T>());
  };
  if (in.dtype() == ScalarType::Int64)
    run(int64_t{});
  else
    by_real(in.dtype(), run);
  out.finish();
}

}  // namespace

void avg_pool2d(const Tensor& result, const Tensor& self, IntList kernel, IntList stride,
                IntList padding, bool ceil_mode, bool include_pad, std::optional<int64_t> divisor) {
  avg_pool_any(result, self, kernel, stride, padding, ceil_mode, include_pad, divisor, 2);
}
void avg_pool3d(const Tensor& result, const Tensor& self, IntList kernel, IntList stride,
                IntList padding, bool ceil_mode, bool include_pad, std::optional<int64_t> divisor) {
  avg_pool_any(result, self, kernel, stride, padding, ceil_mode, include_pad, divisor, 3);
}

void avg_pool_backward(const Tensor& result, const Tensor& grad_output, const Tensor& self,
                       IntList kernel, IntList stride, IntList padding, bool ceil_mode,
                       bool include_pad, std::optional<int64_t> divisor, int64_t spatial) {
  if (result.numel() == 0) return;
  const cpu::PoolSizes s = sizes_of(
      pool_geometry(self.sizes(), spatial, kernel, stride, padding, {1}, ceil_mode, "avg_pool"),
      self.sizes());
  const Tensor grad = dense_values(grad_output);
  const DenseResult out(result, grad.dtype());
  by_real(grad.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::avg_pool_backward<T>(s, {include_pad, divisor.value_or(0)}, grad.data_as<T>(),
                              out.tensor().data_as<T>());
  });
  out.finish();
}

void adaptive_avg_pool(const Tensor& result, const Tensor& self, IntList output) {
  if (result.numel() == 0) return;
  const cpu::PoolSizes s =
      sizes_of(self.sizes(), result.sizes(), static_cast<int64_t>(output.size()));
  const Tensor in = dense_values(self);
  const DenseResult out(result, in.dtype());
  by_real(in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::adaptive_avg_pool<T>(s, in.data_as<T>(), out.tensor().data_as<T>());
  });
  out.finish();
}

void adaptive_avg_pool_backward(const Tensor& result, const Tensor& grad_output, const Tensor&,
                                int64_t spatial) {
  if (result.numel() == 0 || grad_output.numel() == 0) return zero_bytes(result);
  const cpu::PoolSizes s = sizes_of(result.sizes(), grad_output.sizes(), spatial);
  const Tensor grad = dense_values(grad_output);
  const DenseResult out(result, grad.dtype());
  by_real(grad.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::adaptive_avg_pool_backward<T>(s, grad.data_as<T>(), out.tensor().data_as<T>());
  });
  out.finish();
}

}  // namespace lamina::kernels

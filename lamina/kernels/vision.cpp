// Resampling, windows as columns, rearranged pixels.
#include <cmath>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/resample.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/spatial.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

namespace {

using cpu::Resample;
using Scale = std::optional<double>;

std::array<cpu::ResampleAxis, 3> axes_of(Resample mode, IntList in, IntList out, bool align_corners,
                                         const Scale (&scales)[3], ScalarType type) {
  const Planes from(in, static_cast<int64_t>(in.size()) - 2);
  const Planes to(out, static_cast<int64_t>(out.size()) - 2);
  std::array<cpu::ResampleAxis, 3> axes;
  for (size_t i = 0; i < 3; ++i)
    axes[i] = i < 5 - in.size()
                  ? cpu::resample_axis(Resample::Nearest, 1, 1, false, std::nullopt, false)
                  : cpu::resample_axis(mode, from.size[i], to.size[i], align_corners, scales[i],
                                       type == ScalarType::Float64);
  return axes;
}

void resample_any(const Tensor& result, const Tensor& self, Resample mode, bool align_corners,
                  Scale d, Scale h, Scale w) {
  if (result.numel() == 0) return;
  const bool bytes = self.dtype() == ScalarType::UInt8;
  if (bytes && self.dim() == 4) {
    const Tensor in = contiguous_values(self);
    const DenseResult out(result);
    cpu::resample_bytes(
        axes_of(mode, self.sizes(), result.sizes(), align_corners, {d, h, w}, ScalarType::Float64),
        self.sizes()[0] * self.sizes()[1], in.data_as<uint8_t>(), out.tensor().data_as<uint8_t>());
    return out.finish();
  }
  const ScalarType type = bytes ? ScalarType::Float32 : compute_type(self.dtype());
  const Tensor in = contiguous_values(converted(self, type));
  const DenseResult out(result, type);
  const auto axes = axes_of(mode, self.sizes(), result.sizes(), align_corners, {d, h, w}, type);
  const int64_t planes = self.sizes()[0] * self.sizes()[1];
  by_real(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::resample<T>(axes, planes, in.data_as<T>(), out.tensor().data_as<T>());
  });
  if (bytes) {
    float* values = out.tensor().data_as<float>();
    for (int64_t i = 0; i < out.tensor().numel(); ++i)
      values[i] = std::clamp(std::floor(values[i] + 0.5F), 0.0F, 255.0F);
  }
  out.finish();
}

}  // namespace

#define LAMINA_RESAMPLE1(name, mode)                                                  \
  void name(const Tensor& result, const Tensor& self, IntList, Scale w) {             \
    resample_any(result, self, Resample::mode, false, std::nullopt, std::nullopt, w); \
  }
#define LAMINA_RESAMPLE2(name, mode)                                               \
  void name(const Tensor& result, const Tensor& self, IntList, Scale h, Scale w) { \
    resample_any(result, self, Resample::mode, false, std::nullopt, h, w);         \
  }
#define LAMINA_RESAMPLE3(name, mode)                                                        \
  void name(const Tensor& result, const Tensor& self, IntList, Scale d, Scale h, Scale w) { \
    resample_any(result, self, Resample::mode, false, d, h, w);                             \
  }
LAMINA_RESAMPLE1(upsample_nearest1d, Nearest)
LAMINA_RESAMPLE2(upsample_nearest2d, Nearest)
LAMINA_RESAMPLE3(upsample_nearest3d, Nearest)
LAMINA_RESAMPLE1(upsample_nearest_exact1d, NearestExact)
LAMINA_RESAMPLE2(upsample_nearest_exact2d, NearestExact)
LAMINA_RESAMPLE3(upsample_nearest_exact3d, NearestExact)
#undef LAMINA_RESAMPLE1
#undef LAMINA_RESAMPLE2
#undef LAMINA_RESAMPLE3

void upsample_linear1d(const Tensor& result, const Tensor& self, IntList, bool align, Scale w) {
  resample_any(result, self, Resample::Linear, align, std::nullopt, std::nullopt, w);
}
void upsample_trilinear3d(const Tensor& result, const Tensor& self, IntList, bool align, Scale d,
                          Scale h, Scale w) {
  resample_any(result, self, Resample::Linear, align, d, h, w);
}
#define LAMINA_RESAMPLE(name, mode)                                                            \
  void name(const Tensor& result, const Tensor& self, IntList, bool align, Scale h, Scale w) { \
    resample_any(result, self, Resample::mode, align, std::nullopt, h, w);                     \
  }
LAMINA_RESAMPLE(upsample_bilinear2d, Linear)
LAMINA_RESAMPLE(upsample_bicubic2d, Cubic)
LAMINA_RESAMPLE(upsample_bilinear2d_aa, AreaLinear)
LAMINA_RESAMPLE(upsample_bicubic2d_aa, AreaCubic)
#undef LAMINA_RESAMPLE

void resample_backward(const Tensor& result, const Tensor& grad_output, IntList, IntList input_size,
                       int64_t mode, bool align_corners, Scale d, Scale h, Scale w) {
  if (result.numel() == 0) return;
  const Tensor grad = dense_values(grad_output);
  const DenseResult out(result, grad.dtype());
  const auto axes = axes_of(static_cast<Resample>(mode), input_size, grad_output.sizes(),
                            align_corners, {d, h, w}, grad.dtype());
  by_real(grad.dtype(), [&](auto zero) {
    using T = decltype(zero);
    cpu::resample_backward<T>(axes, input_size[0] * input_size[1], grad.data_as<T>(),
                              out.tensor().data_as<T>());
  });
  out.finish();
}

// ---- windows as columns ----
namespace {

struct Columns {
  int64_t planes, h, w, kernel_h, kernel_w, rows, cols;
  IntList dilation, padding, stride;

  Columns(IntList image, IntList kernel, IntList d, IntList p, IntList s)
      : planes(1),
        h(image[image.size() - 2]),
        w(image[image.size() - 1]),
        kernel_h(kernel[0]),
        kernel_w(kernel[1]),
        rows((h + 2 * p[0] - d[0] * (kernel[0] - 1) - 1) / s[0] + 1),
        cols((w + 2 * p[1] - d[1] * (kernel[1] - 1) - 1) / s[1] + 1),
        dilation(d),
        padding(p),
        stride(s) {
    for (size_t i = 0; i + 2 < image.size(); ++i) planes *= image[i];
  }

  // f(column index, image index, step in the image, count) for each stretch of elements that lie in
  // the image; columns of a plane are (kernel_h, kernel_w, rows, cols).
  template <class F>
  void each(F&& f) const {
    for (int64_t i = 0; i < kernel_h; ++i)
      for (int64_t j = 0; j < kernel_w; ++j) {
        const int64_t offset = j * dilation[1] - padding[1], step = stride[1];
        const int64_t first = std::min(offset >= 0 ? 0 : (-offset - 1) / step + 1, cols);
        const int64_t last = std::clamp(offset >= w ? 0 : (w - 1 - offset) / step + 1, first, cols);
        for (int64_t y = 0; y < rows; ++y) {
          const int64_t iy = y * stride[0] - padding[0] + i * dilation[0];
          if (iy < 0 || iy >= h || first == last) continue;
          f(((i * kernel_w + j) * rows + y) * cols + first, iy * w + first * step + offset, step,
            last - first);
        }
      }
  }
  int64_t column_count() const { return kernel_h * kernel_w * rows * cols; }
  template <class F>
  void each_plane(F&& f) const {
    queue::parallel_for(0, planes, std::max<int64_t>(1, 32768 / column_count()),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t p = begin; p < end; ++p) f(p);
                        });
  }
};

}  // namespace

void im2col(const Tensor& result, const Tensor& self, IntList kernel, IntList dilation,
            IntList padding, IntList stride) {
  if (result.numel() == 0) return;
  zero_bytes(result);
  const Tensor in = contiguous_values(self);
  const Columns c(self.sizes(), kernel, dilation, padding, stride);
  visit(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    c.each_plane([&](int64_t p) {
      const T* from = in.data_as<T>() + p * c.h * c.w;
      T* to = result.data_as<T>() + p * c.column_count();
      c.each([&](int64_t at, int64_t image, int64_t step, int64_t count) {
        if (step == 1)
          std::copy_n(from + image, count, to + at);
        else
          for (int64_t i = 0; i < count; ++i) to[at + i] = from[image + i * step];
      });
    });
  });
}

void col2im(const Tensor& result, const Tensor& self, IntList, IntList kernel, IntList dilation,
            IntList padding, IntList stride) {
  if (result.numel() == 0) return;
  const Tensor in = dense_values(self);
  const DenseResult out(result, in.dtype());
  zero_bytes(out.tensor());
  const Columns c(result.sizes(), kernel, dilation, padding, stride);
  visit(in.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || is_complex_type<T> ||
                  std::is_same_v<T, bool>)
      c.each_plane([&](int64_t p) {
        const T* from = in.data_as<T>() + p * c.column_count();
        T* to = out.tensor().template data_as<T>() + p * c.h * c.w;
        c.each([&](int64_t at, int64_t image, int64_t step, int64_t count) {
          for (int64_t i = 0; i < count; ++i)
            if constexpr (std::is_same_v<T, bool>)
              to[image + i * step] = to[image + i * step] || from[at + i];
            else
              to[image + i * step] += from[at + i];
        });
      });
  });
  out.finish();
}

// ---- pixels and channels ----
namespace {

// Copies through one more view of both: `in_strides` and `out_strides` for `sizes`.
void copy_rearranged(const Tensor& result, const Tensor& self, const Sizes& sizes,
                     const Sizes& out_strides, const Sizes& in_strides) {
  if (result.numel() == 0) return;
  tile::copy({result.data(), result.dtype(), out_strides.data()},
             {self.data(), self.dtype(), in_strides.data()}, static_cast<int>(sizes.size()),
             sizes.data());
}

// `large` has the pixels, `small` the channels.
void shuffle(const Tensor& large, const Tensor& small, int64_t r, bool to_pixels) {
  if (large.numel() == 0) return;
  Sizes sizes, pixels, channels;
  const auto n = static_cast<size_t>(large.dim());
  for (size_t i = 0; i + 3 < n; ++i) {
    sizes.push_back(large.sizes()[i]);
    pixels.push_back(large.strides()[i]);
    channels.push_back(small.strides()[i]);
  }
  const auto push = [&](int64_t size, int64_t pixel, int64_t channel) {
    sizes.push_back(size);
    pixels.push_back(pixel);
    channels.push_back(channel);
  };
  const IntList p = large.strides(), c = small.strides();
  push(large.sizes()[n - 3], p[n - 3], c[n - 3] * r * r);
  push(small.sizes()[n - 2], p[n - 2] * r, c[n - 2]);
  push(r, p[n - 2], c[n - 3] * r);
  push(small.sizes()[n - 1], p[n - 1] * r, c[n - 1]);
  push(r, p[n - 1], c[n - 3]);
  if (to_pixels)
    copy_rearranged(large, small, sizes, pixels, channels);
  else
    copy_rearranged(small, large, sizes, channels, pixels);
}

}  // namespace

void pixel_shuffle(const Tensor& result, const Tensor& self, int64_t factor) {
  shuffle(result, self, factor, true);
}
void pixel_unshuffle(const Tensor& result, const Tensor& self, int64_t factor) {
  shuffle(self, result, factor, false);
}

void channel_shuffle(const Tensor& result, const Tensor& self, int64_t groups) {
  if (result.numel() == 0) return;  // groups and sizes may be anything then
  const int64_t each = self.sizes()[1] / groups;
  Sizes sizes{self.sizes()[0], each, groups};
  Sizes out{result.strides()[0], result.strides()[1] * groups, result.strides()[1]};
  Sizes in{self.strides()[0], self.strides()[1], self.strides()[1] * each};
  for (size_t i = 2; i < self.sizes().size(); ++i) {
    sizes.push_back(self.sizes()[i]);
    out.push_back(result.strides()[i]);
    in.push_back(self.strides()[i]);
  }
  copy_rearranged(result, self, sizes, out, in);
}

}  // namespace lamina::kernels

// Padding with a constant, and with elements of the tensor itself.
#include <complex>
#include <cstring>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/spatial.h"
#include "lamina/queue/parallel.h"
#include "lamina/shape/padding.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

void constant_pad(const Tensor& result, const Tensor& self, IntList pad, const Scalar& value) {
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  const size_t dims = sizes.size();
  int64_t from = 0, to = 0;
  bool border = false;
  for (size_t i = 0; i < pad.size(); i += 2) {
    const size_t d = dims - 1 - i / 2;
    from += std::max<int64_t>(0, -pad[i]) * self.strides()[d];
    to += std::max<int64_t>(0, pad[i]) * result.strides()[d];
    sizes[d] += std::min<int64_t>(0, pad[i]) + std::min<int64_t>(0, pad[i + 1]);
    border = border || pad[i] > 0 || pad[i + 1] > 0;
  }
  for (int64_t& s : sizes) s = std::max<int64_t>(s, 0);
  if (result.numel() == 0) return;
  if (border)
    tile::fill({result.data(), result.dtype(), result.strides().data()},
               static_cast<int>(result.dim()), result.sizes().data(), value);
  if (numel_of(sizes) == 0) return;
  const auto item = static_cast<int64_t>(item_size(self.dtype()));
  tile::copy(
      {static_cast<char*>(result.data()) + to * item, result.dtype(), result.strides().data()},
      {static_cast<char*>(self.data()) + from * item, self.dtype(), self.strides().data()},
      static_cast<int>(dims), sizes.data());
}

namespace {

// Where each place of a padded dimension of `size` comes from.
std::vector<int64_t> border_map(int64_t size, int64_t before, int64_t after, Border border) {
  std::vector<int64_t> map(static_cast<size_t>(std::max<int64_t>(0, size + before + after)));
  before = std::max(before, -(int64_t{1} << 62));  // as far out as any place that is further
  for (size_t j = 0; j < map.size(); ++j) {
    int64_t i = static_cast<int64_t>(j) - before;
    switch (border) {
      case Border::Reflect:
        if (i < 0) i = -i;
        if (i >= size) i = 2 * (size - 1) - i;
        break;
      case Border::Replicate:
        i = std::clamp<int64_t>(i, 0, size - 1);
        break;
      case Border::Circular:
        // What negative padding cuts is gone before the rest repeats.
        {
          const int64_t cut = std::max<int64_t>(0, -before);
          const int64_t kept = size - cut - std::max<int64_t>(0, -after);
          i = ((i - cut) % kept + kept) % kept + cut;
        }
        break;
    }
    map[j] = i;
  }
  return map;
}

struct BorderMaps {
  Planes large, small;
  std::vector<int64_t> maps[3];
  // Elements first..last of a padded row are adjacent in the source as well.
  int64_t first, last;

  BorderMaps(IntList padded, IntList plain, IntList pad, Border border)
      : large(padded, static_cast<int64_t>(pad.size() / 2)),
        small(plain, static_cast<int64_t>(pad.size() / 2)) {
    for (size_t i = 0; i < 3; ++i) {
      const size_t at = 2 * (2 - i);
      const bool has = at < pad.size();
      maps[i] = border_map(small.size[i], has ? pad[at] : 0, has ? pad[at + 1] : 0, border);
    }
    first = std::clamp<int64_t>(pad[0], 0, large.size[2]);
    last = std::clamp<int64_t>(small.size[2] + pad[0], first, large.size[2]);
  }
};

template <class T>
void pad_rows(const BorderMaps& m, const T* in, T* out) {
  const int64_t lines = m.large.size[0] * m.large.size[1], width = m.large.size[2];
  queue::parallel_for(
      0, m.large.planes * lines, std::max<int64_t>(1, 16384 / std::max<int64_t>(width, 1)),
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const auto z = static_cast<size_t>(r % lines / m.large.size[1]);
          const auto y = static_cast<size_t>(r % m.large.size[1]);
          const T* from =
              in + ((r / lines * m.small.size[0] + m.maps[0][z]) * m.small.size[1] + m.maps[1][y]) *
                       m.small.size[2];
          T* to = out + r * width;
          for (int64_t x = 0; x < m.first; ++x) to[x] = from[m.maps[2][static_cast<size_t>(x)]];
          if (m.last > m.first)
            std::memcpy(static_cast<void*>(to + m.first),
                        from + m.maps[2][static_cast<size_t>(m.first)],
                        static_cast<size_t>(m.last - m.first) * sizeof(T));
          for (int64_t x = m.last; x < width; ++x) to[x] = from[m.maps[2][static_cast<size_t>(x)]];
        }
      });
}

void border_pad(const Tensor& result, const Tensor& self, IntList pad, Border border) {
  if (result.numel() == 0) return;
  const DenseResult out(result);
  const Tensor in = contiguous_values(self);
  const BorderMaps maps(result.sizes(), self.sizes(), pad, border);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    pad_rows(maps, in.data_as<T>(), out.tensor().data_as<T>());
  };
  switch (item_size(self.dtype())) {
    case 1:
      run(uint8_t{});
      break;
    case 2:
      run(uint16_t{});
      break;
    case 4:
      run(uint32_t{});
      break;
    case 8:
      run(uint64_t{});
      break;
    default:
      run(std::complex<double>{});
  }
  out.finish();
}

}  // namespace

void reflection_pad(const Tensor& result, const Tensor& self, IntList padding) {
  border_pad(result, self, padding, Border::Reflect);
}
void replication_pad(const Tensor& result, const Tensor& self, IntList padding) {
  border_pad(result, self, padding, Border::Replicate);
}
void circular_pad(const Tensor& result, const Tensor& self, IntList pad) {
  border_pad(result, self, pad, Border::Circular);
}

void border_pad_backward(const Tensor& result, const Tensor& grad_output, const Tensor&,
                         IntList pad, int64_t mode) {
  if (result.numel() == 0) return;
  const Tensor grad = dense_values(grad_output);
  const DenseResult out(result, grad.dtype());
  zero_bytes(out.tensor());
  const BorderMaps m(grad_output.sizes(), result.sizes(), pad, static_cast<Border>(mode));
  visit(grad.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || is_complex_type<T>) {
      const T* from = grad.data_as<T>();
      T* to = out.tensor().data_as<T>();
      const int64_t width = m.large.size[2];
      queue::parallel_for(
          0, m.large.planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, m.large.count())),
          [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; ++p)
              for (size_t z = 0; z < m.maps[0].size(); ++z)
                for (size_t y = 0; y < m.maps[1].size(); ++y) {
                  const T* row =
                      from + ((p * m.large.size[0] + static_cast<int64_t>(z)) * m.large.size[1] +
                              static_cast<int64_t>(y)) *
                                 width;
                  T* sum =
                      to + ((p * m.small.size[0] + m.maps[0][z]) * m.small.size[1] + m.maps[1][y]) *
                               m.small.size[2];
                  for (int64_t x = 0; x < width; ++x)
                    sum[m.maps[2][static_cast<size_t>(x)]] += row[x];
                }
          });
    }
  });
  out.finish();
}

}  // namespace lamina::kernels

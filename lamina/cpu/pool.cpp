#include "lamina/cpu/pool.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "lamina/core/dim.h"
#include "lamina/core/error.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kGrain = 32768;

int64_t count_of(const std::array<int64_t, 3>& size) { return size[0] * size[1] * size[2]; }

template <class F>
void each_plane(const PoolSizes& s, F&& f) {
  // Windows may be larger than any image: more taps than an integer counts.
  double work = 1;
  for (size_t d = 0; d < 3; ++d) work *= double(s.output[d]) * double(s.kernel[d]);
  work = std::max({double(count_of(s.input)), work, 1.0});
  queue::parallel_for(0, s.planes, std::max<int64_t>(1, static_cast<int64_t>(kGrain / work)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t p = begin; p < end; ++p) f(p);
                      });
}

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// Outputs whose tap at `offset` from the window's begin lies in the input: first..last.
struct Range {
  int64_t first, last;
};
Range valid(int64_t offset, int64_t stride, int64_t in, int64_t out) {
  const int64_t first = offset >= 0 ? 0 : ceil_div(-offset, stride);
  const int64_t last = offset >= in ? 0 : (in - 1 - offset) / stride + 1;
  return {std::min(first, out), std::clamp(last, std::min(first, out), out)};
}

template <class T>
constexpr T lowest() {
  if constexpr (std::numeric_limits<T>::has_infinity)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

template <class T>
bool is_larger(T v, T best) {
  return (v > best) | (v != v);
}

template <int kStride, class T>
void max_row(const T* in, int64_t stride, int64_t n, T* best) {
  const int64_t s = kStride ? kStride : stride;
  for (int64_t i = 0; i < n; ++i) {
    const T v = in[i * s], b = best[i];
    best[i] = is_larger(v, b) ? v : b;
  }
}

template <int kStride, class T, class I>
void max_row_at(const T* in, int64_t stride, int64_t n, I at, T* best, I* index) {
  const I s = static_cast<I>(kStride ? kStride : stride);
  for (int64_t i = 0; i < n; ++i) {
    const T v = in[i * (kStride ? kStride : stride)], b = best[i];
    const bool larger = is_larger(v, b);
    best[i] = larger ? v : b;
    index[i] = larger ? static_cast<I>(at + static_cast<I>(i) * s) : index[i];
  }
}

// Taps of dimension d that lie in the input for one of the windows from..to.
Range taps(const PoolSizes& s, size_t d, int64_t from, int64_t to) {
  const int64_t before = s.padding[d] - to * s.stride[d];
  const int64_t room = s.input[d] - 1 + s.padding[d] - from * s.stride[d];
  return {before <= 0 ? 0 : ceil_div(before, s.dilation[d]),
          room < 0 ? 0 : std::min(s.kernel[d], room / s.dilation[d] + 1)};
}

// The rows of the input that a row of the output reads, each with the taps of its columns.
template <class F>
void each_tap(const PoolSizes& s, int64_t z, int64_t y, F&& f) {
  const Range rz = taps(s, 0, z, z), ry = taps(s, 1, y, y), rx = taps(s, 2, 0, s.output[2] - 1);
  for (int64_t kz = rz.first; kz < rz.last; ++kz) {
    const int64_t iz = z * s.stride[0] - s.padding[0] + kz * s.dilation[0];
    for (int64_t ky = ry.first; ky < ry.last; ++ky) {
      const int64_t iy = y * s.stride[1] - s.padding[1] + ky * s.dilation[1];
      const int64_t row = (iz * s.input[1] + iy) * s.input[2];
      for (int64_t kx = rx.first; kx < rx.last; ++kx) {
        const int64_t offset = kx * s.dilation[2] - s.padding[2];
        const Range r = valid(offset, s.stride[2], s.input[2], s.output[2]);
        if (r.first < r.last) f(row + r.first * s.stride[2] + offset, r.first, r.last - r.first);
      }
    }
  }
}

// First element of a window in one dimension.
int64_t first_in(int64_t o, int64_t stride, int64_t padding, int64_t dilation, int64_t in) {
  const int64_t start = o * stride - padding;
  // A dilated window may miss the input altogether; its place is in it all the same.
  return std::min(start >= 0 ? start : start + ceil_div(-start, dilation) * dilation, in - 1);
}

template <class T, class I>
void max_pool_at(const PoolSizes& s, const T* in, T* out, int64_t* indices) {
  const int64_t width = s.output[2];
  each_plane(s, [&](int64_t p) {
    const T* plane = in + p * count_of(s.input);
    std::vector<I> at(static_cast<size_t>(width));
    for (int64_t z = 0; z < s.output[0]; ++z)
      for (int64_t y = 0; y < s.output[1]; ++y) {
        const int64_t row = ((p * s.output[0] + z) * s.output[1] + y) * width;
        T* best = out + row;
        const int64_t begin =
            (first_in(z, s.stride[0], s.padding[0], s.dilation[0], s.input[0]) * s.input[1] +
             first_in(y, s.stride[1], s.padding[1], s.dilation[1], s.input[1])) *
            s.input[2];
        for (int64_t x = 0; x < width; ++x) {
          best[x] = lowest<T>();
          at[static_cast<size_t>(x)] = static_cast<I>(
              begin + first_in(x, s.stride[2], s.padding[2], s.dilation[2], s.input[2]));
        }
        each_tap(s, z, y, [&](int64_t from, int64_t x, int64_t n) {
          const I first = static_cast<I>(from);
          if (s.stride[2] == 1)
            max_row_at<1>(plane + from, 1, n, first, best + x, at.data() + x);
          else if (s.stride[2] == 2)
            max_row_at<2>(plane + from, 2, n, first, best + x, at.data() + x);
          else
            max_row_at<0>(plane + from, s.stride[2], n, first, best + x, at.data() + x);
        });
        for (int64_t x = 0; x < width; ++x) indices[row + x] = at[static_cast<size_t>(x)];
      }
  });
}

template <class T>
void max_pool_values(const PoolSizes& s, const T* in, T* out) {
  const int64_t width = s.output[2];
  each_plane(s, [&](int64_t p) {
    const T* plane = in + p * count_of(s.input);
    for (int64_t z = 0; z < s.output[0]; ++z)
      for (int64_t y = 0; y < s.output[1]; ++y) {
        T* best = out + ((p * s.output[0] + z) * s.output[1] + y) * width;
        std::fill_n(best, width, lowest<T>());
        each_tap(s, z, y, [&](int64_t from, int64_t x, int64_t n) {
          if (s.stride[2] == 1)
            max_row<1>(plane + from, 1, n, best + x);
          else if (s.stride[2] == 2)
            max_row<2>(plane + from, 2, n, best + x);
          else
            max_row<0>(plane + from, s.stride[2], n, best + x);
        });
      }
  });
}

// Number of elements of each window along one dimension, with the padding or without it.
std::vector<int64_t> window_counts(const PoolSizes& s, size_t d, bool include_pad) {
  std::vector<int64_t> counts(static_cast<size_t>(s.output[d]));
  for (size_t o = 0; o < counts.size(); ++o) {
    const int64_t start = static_cast<int64_t>(o) * s.stride[d] - s.padding[d];
    const int64_t end = std::min(start + s.kernel[d], s.input[d] + s.padding[d]);
    counts[o] = include_pad ? end - start : std::min(end, s.input[d]) - std::max<int64_t>(start, 0);
  }
  return counts;
}

struct Divisors {
  std::vector<int64_t> counts[3];
  int64_t fixed;
  Divisors(const PoolSizes& s, const PoolDivisor& d)
      : counts{window_counts(s, 0, d.include_pad), window_counts(s, 1, d.include_pad),
               window_counts(s, 2, d.include_pad)},
        fixed(d.fixed) {
    Dim largest = 1;
    for (const auto& list : counts)
      largest *= list.empty() ? Dim(1) : Dim(*std::max_element(list.begin(), list.end()));
  }
  int64_t operator()(int64_t z, int64_t y, int64_t x) const {
    if (fixed) return fixed;
    return counts[0][static_cast<size_t>(z)] * counts[1][static_cast<size_t>(y)] *
           counts[2][static_cast<size_t>(x)];
  }
};

int64_t window_begin(int64_t o, int64_t in, int64_t out) {
  return o / out * in + o % out * in / out;
}
int64_t window_end(int64_t o, int64_t in, int64_t out) {
  return window_begin(o + 1, in, out) + ((o + 1) % out * in % out != 0);
}

// f(output index in the plane, begin[3], end[3]) for each window of a plane.
template <class F>
void each_window(const PoolSizes& s, F&& f) {
  int64_t index = 0;
  int64_t begin[3], end[3];
  for (int64_t z = 0; z < s.output[0]; ++z) {
    begin[0] = window_begin(z, s.input[0], s.output[0]);
    end[0] = window_end(z, s.input[0], s.output[0]);
    for (int64_t y = 0; y < s.output[1]; ++y) {
      begin[1] = window_begin(y, s.input[1], s.output[1]);
      end[1] = window_end(y, s.input[1], s.output[1]);
      for (int64_t x = 0; x < s.output[2]; ++x) {
        begin[2] = window_begin(x, s.input[2], s.output[2]);
        end[2] = window_end(x, s.input[2], s.output[2]);
        f(index++, begin, end);
      }
    }
  }
}

template <class T>
void largest(const PoolSizes& s, const T* plane, const int64_t* begin, const int64_t* end, T* out,
             int64_t* index) {
  int64_t at = (begin[0] * s.input[1] + begin[1]) * s.input[2] + begin[2];
  T best = lowest<T>();
  for (int64_t z = begin[0]; z < end[0]; ++z)
    for (int64_t y = begin[1]; y < end[1]; ++y)
      for (int64_t x = begin[2]; x < end[2]; ++x) {
        const int64_t i = (z * s.input[1] + y) * s.input[2] + x;
        if (is_larger(plane[i], best)) best = plane[i], at = i;
      }
  *out = best;
  *index = at;
}

}  // namespace

template <class T>
void max_pool(const PoolSizes& s, const T* in, T* out, int64_t* indices) {
  if (!indices)
    max_pool_values(s, in, out);
  else if (count_of(s.input) < std::numeric_limits<int32_t>::max())
    max_pool_at<T, int32_t>(s, in, out, indices);
  else
    max_pool_at<T, int64_t>(s, in, out, indices);
}

template <class T>
void avg_pool(const PoolSizes& s, const PoolDivisor& d, const T* in, T* out) {
  const Divisors divisor(s, d);
  const int64_t width = s.output[2];
  each_plane(s, [&](int64_t p) {
    const T* plane = in + p * count_of(s.input);
    for (int64_t z = 0; z < s.output[0]; ++z)
      for (int64_t y = 0; y < s.output[1]; ++y) {
        T* sum = out + ((p * s.output[0] + z) * s.output[1] + y) * width;
        std::fill_n(sum, width, T(0));
        each_tap(s, z, y, [&](int64_t from, int64_t x, int64_t n) {
          const T* row = plane + from;
          if (s.stride[2] == 1)
            for (int64_t i = 0; i < n; ++i) sum[x + i] += row[i];
          else if (s.stride[2] == 2)
            for (int64_t i = 0; i < n; ++i) sum[x + i] += row[2 * i];
          else
            for (int64_t i = 0; i < n; ++i) sum[x + i] += row[i * s.stride[2]];
        });
        for (int64_t x = 0; x < width; ++x) {
          const int64_t by = divisor(z, y, x);
          sum[x] = by == 0 ? T(0) : sum[x] / static_cast<T>(by);
        }
      }
  });
}

template <class T>
void avg_pool_backward(const PoolSizes& s, const PoolDivisor& d, const T* grad, T* in_grad) {
  const Divisors divisor(s, d);
  const int64_t width = s.output[2];
  each_plane(s, [&](int64_t p) {
    T* plane = in_grad + p * count_of(s.input);
    std::fill_n(plane, count_of(s.input), T(0));
    std::vector<T> share(static_cast<size_t>(width));
    for (int64_t z = 0; z < s.output[0]; ++z)
      for (int64_t y = 0; y < s.output[1]; ++y) {
        const T* row = grad + ((p * s.output[0] + z) * s.output[1] + y) * width;
        for (int64_t x = 0; x < width; ++x) {
          const int64_t by = divisor(z, y, x);
          share[static_cast<size_t>(x)] = by == 0 ? T(0) : row[x] / static_cast<T>(by);
        }
        each_tap(s, z, y, [&](int64_t to, int64_t x, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            plane[to + i * s.stride[2]] += share[static_cast<size_t>(x + i)];
        });
      }
  });
}

template <class T>
void adaptive_avg_pool(const PoolSizes& s, const T* in, T* out) {
  each_plane(s, [&](int64_t p) {
    const T* plane = in + p * count_of(s.input);
    T* to = out + p * count_of(s.output);
    each_window(s, [&](int64_t o, const int64_t* begin, const int64_t* end) {
      T sum = 0;
      for (int64_t z = begin[0]; z < end[0]; ++z)
        for (int64_t y = begin[1]; y < end[1]; ++y)
          for (int64_t x = begin[2]; x < end[2]; ++x)
            sum += plane[(z * s.input[1] + y) * s.input[2] + x];
      to[o] = sum / static_cast<T>((end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]));
    });
  });
}

template <class T>
void adaptive_avg_pool_backward(const PoolSizes& s, const T* grad, T* in_grad) {
  each_plane(s, [&](int64_t p) {
    T* plane = in_grad + p * count_of(s.input);
    const T* from = grad + p * count_of(s.output);
    std::fill_n(plane, count_of(s.input), T(0));
    each_window(s, [&](int64_t o, const int64_t* begin, const int64_t* end) {
      const T share =
          from[o] / static_cast<T>((end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]));
      for (int64_t z = begin[0]; z < end[0]; ++z)
        for (int64_t y = begin[1]; y < end[1]; ++y)
          for (int64_t x = begin[2]; x < end[2]; ++x)
            plane[(z * s.input[1] + y) * s.input[2] + x] += share;
    });
  });
}

template <class T>
void adaptive_max_pool(const PoolSizes& s, const T* in, T* out, int64_t* indices) {
  each_plane(s, [&](int64_t p) {
    const T* plane = in + p * count_of(s.input);
    const int64_t to = p * count_of(s.output);
    each_window(s, [&](int64_t o, const int64_t* begin, const int64_t* end) {
      largest(s, plane, begin, end, out + to + o, indices + to + o);
    });
  });
}

template <class T>
void fractional_max_pool(const PoolSizes& s, int64_t spatial, const T* samples, const T* in, T* out,
                         int64_t* indices) {
  each_plane(s, [&](int64_t p) {
    std::vector<int64_t> starts[3];
    for (int64_t d = 0; d < 3; ++d) {
      const auto at = static_cast<size_t>(d);
      const int64_t n = s.output[at], room = s.input[at] - s.kernel[at];
      starts[at].assign(static_cast<size_t>(n), 0);
      if (d < 3 - spatial) continue;
      const int64_t which = spatial == 2 ? 2 - d : d;
      const T sample = samples[p * spatial + which];
      const T alpha = n > 1 ? static_cast<T>(room) / static_cast<T>(n - 1) : T(0);
      for (int64_t i = 0; i + 1 < n; ++i)
        starts[at][static_cast<size_t>(i)] =
            std::clamp<int64_t>(static_cast<int64_t>((static_cast<T>(i) + sample) * alpha) -
                                    static_cast<int64_t>(sample * alpha),
                                0, room);
      starts[at].back() = room;
    }
    const T* plane = in + p * count_of(s.input);
    int64_t to = p * count_of(s.output);
    int64_t begin[3], end[3];
    for (const int64_t z : starts[0])
      for (const int64_t y : starts[1])
        for (const int64_t x : starts[2]) {
          const int64_t start[] = {z, y, x};
          for (size_t d = 0; d < 3; ++d) begin[d] = start[d], end[d] = start[d] + s.kernel[d];
          largest(s, plane, begin, end, out + to, indices + to);
          ++to;
        }
  });
}

#define LAMINA_MAX_POOL(T) template void max_pool<T>(const PoolSizes&, const T*, T*, int64_t*);
LAMINA_MAX_POOL(int8_t)
LAMINA_MAX_POOL(uint8_t)
LAMINA_MAX_POOL(int16_t)
LAMINA_MAX_POOL(uint16_t)
LAMINA_MAX_POOL(int32_t)
LAMINA_MAX_POOL(uint32_t)
LAMINA_MAX_POOL(int64_t)
LAMINA_MAX_POOL(uint64_t)
LAMINA_MAX_POOL(float)
LAMINA_MAX_POOL(double)
template void avg_pool<int64_t>(const PoolSizes&, const PoolDivisor&, const int64_t*, int64_t*);
#define LAMINA_POOL(T)                                                                    \
  template void avg_pool<T>(const PoolSizes&, const PoolDivisor&, const T*, T*);          \
  template void avg_pool_backward<T>(const PoolSizes&, const PoolDivisor&, const T*, T*); \
  template void adaptive_avg_pool<T>(const PoolSizes&, const T*, T*);                     \
  template void adaptive_avg_pool_backward<T>(const PoolSizes&, const T*, T*);            \
  template void adaptive_max_pool<T>(const PoolSizes&, const T*, T*, int64_t*);           \
  template void fractional_max_pool<T>(const PoolSizes&, int64_t, const T*, const T*, T*, int64_t*);
LAMINA_POOL(float)
LAMINA_POOL(double)

}  // namespace lamina::cpu

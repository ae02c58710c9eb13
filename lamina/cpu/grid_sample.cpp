#include "lamina/cpu/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "lamina/queue/parallel.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kChannels = 8;  // of one task that scatters

// What one dimension adds to a place: elements (-1 where there is none), weights and the weights'
// derivatives by the grid.
template <class T>
struct AxisTaps {
  int count = 0;
  int64_t index[4];
  T weight[4], slope[4];
};

template <class T>
struct Bordered {
  T at, slope;
};

// Into the image, by the rule of the border; `slope` is multiplied by the rule's.
template <class T>
Bordered<T> bordered(T at, T slope, const GridSample& s, int64_t size) {
  if (s.border == SampleBorder::Zeros) return {at, slope};
  if (s.border == SampleBorder::Reflection) {
    const T low = s.align_corners ? T(0) : T(-0.5);
    const T span = s.align_corners ? static_cast<T>(size - 1) : static_cast<T>(size);
    if (span <= 0) {
      at = 0;
      slope = 0;
    } else {
      T distance = at - low;
      if (distance < 0) distance = -distance, slope = -slope;
      const T rest = std::fmod(distance, span);
      const bool even = std::fmod(std::floor(distance / span), T(2)) == 0;
      at = even ? rest + low : span - rest + low;
      if (!even) slope = -slope;
    }
  }
  const T last = static_cast<T>(size - 1);
  if (!(at > 0)) return {T(0), T(0)};
  if (at >= last) return {last, T(0)};
  return {at, slope};
}

// -1 for what lies outside, however far.
template <class T>
int64_t element(T at, int64_t size) {
  return at >= 0 && at < static_cast<T>(size) ? static_cast<int64_t>(at) : -1;
}

template <class T>
T near(T x) {
  return ((T(-0.75) + 2) * x - (T(-0.75) + 3)) * x * x + 1;
}
template <class T>
T far(T x) {
  return ((T(-0.75) * x + T(3.75)) * x - 6) * x + 3;
}
template <class T>
T near_slope(T x) {
  return (3 * (T(-0.75) + 2) * x - 2 * (T(-0.75) + 3)) * x;
}
template <class T>
T far_slope(T x) {
  return (T(-2.25) * x + T(7.5)) * x - 6;
}

template <class T>
AxisTaps<T> axis_taps(T g, const GridSample& s, int64_t size) {
  if (g != g) g = T(-1);
  AxisTaps<T> taps;
  const T extent = static_cast<T>(s.align_corners ? size - 1 : size);
  const T place = s.align_corners ? (g + 1) / 2 * extent : ((g + 1) * extent - 1) / 2;
  const T factor = extent / 2;
  if (s.mode == Sample::Cubic) {
    const T low = std::floor(place);
    const T t = place - low;
    if (!std::isfinite(place)) return taps;
    const T w[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    const T d[] = {far_slope(t + 1), near_slope(t), -near_slope(1 - t), -far_slope(2 - t)};
    taps.count = 4;
    for (int i = 0; i < 4; ++i) {
      const T at = bordered(low + static_cast<T>(i - 1), T(1), s, size).at;
      taps.index[i] = element(at, size);
      taps.weight[i] = w[i];
      taps.slope[i] = d[i] * factor;
    }
    return taps;
  }
  const Bordered<T> b = bordered(place, factor, s, size);
  if (s.mode == Sample::Nearest) {
    taps.count = 1;
    taps.index[0] = element(std::nearbyint(b.at), size);
    taps.weight[0] = 1;
    taps.slope[0] = 0;
    return taps;
  }
  const T low = std::floor(b.at), t = b.at - low;
  taps.count = 2;
  taps.index[0] = element(low, size);
  taps.index[1] = element(low + 1, size);
  taps.weight[0] = 1 - t;
  taps.weight[1] = t;
  taps.slope[0] = -b.slope;
  taps.slope[1] = b.slope;
  return taps;
}

// The elements of a place that lie in the image.
template <class T>
struct PlaceTaps {
  int count = 0;
  int64_t index[16];
  T weight[16];
  T slope[3][16];  // by the grid's entries, in their order

  PlaceTaps(const GridSample& s, const T* grid, bool slopes) {
    const AxisTaps<T> x = axis_taps(grid[0], s, s.size[2]), y = axis_taps(grid[1], s, s.size[1]);
    AxisTaps<T> z;
    z.count = 1;
    z.index[0] = 0;
    z.weight[0] = 1;
    z.slope[0] = 0;
    if (s.spatial == 3) z = axis_taps(grid[2], s, s.size[0]);
    for (int k = 0; k < z.count; ++k) {
      if (z.index[k] < 0) continue;
      for (int j = 0; j < y.count; ++j) {
        if (y.index[j] < 0) continue;
        for (int i = 0; i < x.count; ++i) {
          if (x.index[i] < 0) continue;
          index[count] = (z.index[k] * s.size[1] + y.index[j]) * s.size[2] + x.index[i];
          weight[count] = z.weight[k] * y.weight[j] * x.weight[i];
          if (slopes) {
            slope[0][count] = z.weight[k] * y.weight[j] * x.slope[i];
            slope[1][count] = z.weight[k] * y.slope[j] * x.weight[i];
            slope[2][count] = z.slope[k] * y.weight[j] * x.weight[i];
          }
          ++count;
        }
      }
    }
  }
};

int64_t elements(const GridSample& s) { return s.size[0] * s.size[1] * s.size[2]; }
int64_t grain(const GridSample& s) {
  return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, s.channels));
}

}  // namespace

template <class T>
void grid_sample(const GridSample& s, const T* input, const T* grid, T* output) {
  queue::parallel_for(0, s.batch * s.places, grain(s), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / s.places, place = i % s.places;
      const PlaceTaps<T> taps(s, grid + i * s.spatial, false);
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* plane = input + (n * s.channels + c) * elements(s);
        T sum = 0;
        for (int t = 0; t < taps.count; ++t) sum += plane[taps.index[t]] * taps.weight[t];
        output[(n * s.channels + c) * s.places + place] = sum;
      }
    }
  });
}

template <class T>
void grid_sample_input_grad(const GridSample& s, const T* grad, const T* grid, T* input_grad) {
  const int64_t blocks = (s.channels + kChannels - 1) / kChannels;
  queue::parallel_for(0, s.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks, first = i % blocks * kChannels;
      const int64_t last = std::min(first + kChannels, s.channels);
      std::fill(input_grad + (n * s.channels + first) * elements(s),
                input_grad + (n * s.channels + last) * elements(s), T(0));
      for (int64_t place = 0; place < s.places; ++place) {
        const PlaceTaps<T> taps(s, grid + (n * s.places + place) * s.spatial, false);
        for (int64_t c = first; c < last; ++c) {
          T* plane = input_grad + (n * s.channels + c) * elements(s);
          const T g = grad[(n * s.channels + c) * s.places + place];
          for (int t = 0; t < taps.count; ++t) plane[taps.index[t]] += g * taps.weight[t];
        }
      }
    }
  });
}

template <class T>
void grid_sample_grid_grad(const GridSample& s, const T* grad, const T* input, const T* grid,
                           T* grid_grad) {
  queue::parallel_for(0, s.batch * s.places, grain(s), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / s.places, place = i % s.places;
      const PlaceTaps<T> taps(s, grid + i * s.spatial, true);
      T sums[3] = {};
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* plane = input + (n * s.channels + c) * elements(s);
        const T g = grad[(n * s.channels + c) * s.places + place];
        for (int t = 0; t < taps.count; ++t)
          for (int64_t d = 0; d < s.spatial; ++d)
            sums[d] += g * plane[taps.index[t]] * taps.slope[d][t];
      }
      for (int64_t d = 0; d < s.spatial; ++d) grid_grad[i * s.spatial + d] = sums[d];
    }
  });
}

#define LAMINA_GRID_SAMPLE(T)                                                         \
  template void grid_sample<T>(const GridSample&, const T*, const T*, T*);            \
  template void grid_sample_input_grad<T>(const GridSample&, const T*, const T*, T*); \
  template void grid_sample_grid_grad<T>(const GridSample&, const T*, const T*, const T*, T*);
LAMINA_GRID_SAMPLE(float)
LAMINA_GRID_SAMPLE(double)

}  // namespace lamina::cpu

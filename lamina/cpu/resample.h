// Resampling along up to three dimensions: a result is a weighted sum of few source elements in
// each of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace lamina::cpu {

enum class Resample : int64_t { Nearest, NearestExact, Linear, Cubic, AreaLinear, AreaCubic };

// Place o of a result is the sum of `count[o]` elements, index[i] times weight[i] from i = first[o]
// on.
struct ResampleAxis {
  int64_t in = 1, out = 1;
  std::vector<int64_t> first, count;
  std::vector<int64_t> index;
  std::vector<double> weight;
};

// `wide`: places are computed in float64 (for float64 data), else in float32 as the peer does.
ResampleAxis resample_axis(Resample mode, int64_t in, int64_t out, bool align_corners,
                           std::optional<double> scale, bool wide);

template <class T>
void resample(const std::array<ResampleAxis, 3>& axes, int64_t planes, const T* in, T* out);
// Planes of bytes in fixed point, as imaging libraries do: columns first, rounded to bytes, then
// rows. axes[0] must be one place.
void resample_bytes(const std::array<ResampleAxis, 3>& axes, int64_t planes, const uint8_t* in,
                    uint8_t* out);
template <class T>
void resample_backward(const std::array<ResampleAxis, 3>& axes, int64_t planes, const T* grad,
                       T* in_grad);

}  // namespace lamina::cpu

// Sampling an image at places that a grid holds.
#pragma once

#include <array>
#include <cstdint>

namespace lamina::cpu {

enum class Sample : int64_t { Linear, Nearest, Cubic };
enum class SampleBorder : int64_t { Zeros, Border, Reflection };

// input (batch, channels, size), grid (batch, places, spatial) with the last dimension first,
// output (batch, channels, places); all row-major. Sizes are right-aligned.
struct GridSample {
  int64_t batch = 0, channels = 0, places = 0, spatial = 2;
  std::array<int64_t, 3> size{1, 1, 1};
  Sample mode = Sample::Linear;
  SampleBorder border = SampleBorder::Zeros;
  bool align_corners = false;
};

template <class T>
void grid_sample(const GridSample& s, const T* input, const T* grid, T* output);
template <class T>
void grid_sample_input_grad(const GridSample& s, const T* grad, const T* grid, T* input_grad);
template <class T>
void grid_sample_grid_grad(const GridSample& s, const T* grad, const T* input, const T* grid,
                           T* grid_grad);

}  // namespace lamina::cpu

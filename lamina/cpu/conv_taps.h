// What convolution and its derivatives have in common: sums over taps. An output is a grid of
// points; each reads the source at `step` times its place plus one offset for each tap.
#pragma once

#include <cstdint>
#include <vector>

#include "lamina/core/scalar_type.h"
#include "lamina/cpu/conv.h"
#include "lamina/cpu/conv_kernels.h"

namespace lamina::cpu {

struct TapAxis {
  int64_t out = 1, in = 1, step = 1;
  std::vector<int64_t> taps;     // offsets in the source
  std::vector<int64_t> weights;  // where the tap's weight lies, in elements
};

// A window of `width` points of one row (and `rows` rows) of the output grid, and where a copy of
// what they read from a source lies: one plane for each residue of the step and each (channel,
// depth tap), rows of `pitch` elements. The copy holds zeros where the source has ended, so that
// every tap of every point is one offset; between the end of a row and the begin of the next the
// zeros are shared where they may be.
class Window {
 public:
  Window(const TapAxis& y, const TapAxis& x, int64_t rows, int64_t width);

  int64_t pitch() const { return pitch_; }
  int64_t plane() const { return plane_; }  // elements of one channel, all residues
  int64_t taps() const { return static_cast<int64_t>(offsets_.size()); }
  const std::vector<int64_t>& offsets() const { return offsets_; }
  // Copies what the points (y0.., x0..) read of one plane of the source; null stands for zeros.
  void fill(const ConvKernels& kernels, ScalarType type, const void* source, int64_t y_stride,
            int64_t x_stride, int64_t y0, int64_t rows, int64_t x0, int64_t width, void* out) const;

 private:
  struct Residue {
    int64_t value = 0, first = 0, last = 0;  // taps are step * q + value with q in first..last
  };
  static std::vector<Residue> residues(const TapAxis& axis, std::vector<int64_t>* tap_residue);

  int64_t y_step_, x_step_, y_in_, x_in_;
  std::vector<Residue> ys_, xs_;
  int64_t pitch_ = 0, lines_ = 0, plane_ = 0;
  std::vector<int64_t> offsets_;  // of the taps, x innermost
};

// Sums over taps with weights.
struct TapSum {
  ScalarType dtype = ScalarType::Float32;
  int64_t batch = 0, groups = 1;
  int64_t channels = 0, rows = 0;  // read and written, of one group
  TapAxis axes[3];
  ConvArray source, target;
  const void* weight = nullptr;
  int64_t weight_group = 0, weight_row = 0, weight_channel = 0;
  ConvBias bias;
};
void run_tap_sum(TapSum sum);

}  // namespace lamina::cpu

// Normalization of row-major arrays of float or double, forward and backward.
// Work is split by rows, groups or channels alone, so the bits depend on no number of threads.
#pragma once

#include <cstdint>

#include "lamina/core/scalar_type.h"

namespace lamina::tile {

// `rows` rows of n values: layer_norm, and rms_norm where it is not `centered`. weight and bias
// hold n values or are null; mean (null where not centered) and rstd get one number a row.
struct RowNorm {
  ScalarType type = ScalarType::Float32;
  int64_t rows = 0, n = 0;
  bool centered = true;
  const void* weight = nullptr;
};
void normalize_rows(const RowNorm& call, void* out, void* mean, void* rstd, const void* x,
                    const void* bias, double eps);
// Gradients; each of the three may be null. Those of weight and bias are overwritten.
void normalize_rows_backward(const RowNorm& call, void* dx, void* weight_grad, void* bias_grad,
                             const void* grad, const void* x, const void* mean, const void* rstd);

// samples x channels x inner values. group_norm takes one mean for `group` adjacent channels of one
// sample, batch_norm one for each channel over all samples (across_samples). weight and bias hold
// one number a channel or are null; mean and rstd one for each sample and group, or each channel.
struct ChannelNorm {
  ScalarType type = ScalarType::Float32;
  int64_t samples = 0, channels = 0, inner = 0;
  int64_t group = 1;  // channels of a group
  bool across_samples = false;
  const void* weight = nullptr;
};
// Mean and sum of squared distances from it, for every group or channel.
void channel_moments(const ChannelNorm& call, double* mean, double* squares, const void* x);
void normalize_channels(const ChannelNorm& call, void* out, const void* mean, const void* rstd,
                        const void* x, const void* bias);
// With `constant` the statistics were given, not taken from x.
void normalize_channels_backward(const ChannelNorm& call, void* dx, void* weight_grad,
                                 void* bias_grad, const void* grad, const void* x, const void* mean,
                                 const void* rstd, bool constant);

}  // namespace lamina::tile

// Pooling on dense planes of three (right-aligned) dimensions. Instantiated for float, double and,
// for max_pool, the integers.
#pragma once

#include <array>
#include <cstdint>

namespace lamina::cpu {

struct PoolSizes {
  int64_t planes = 0;
  std::array<int64_t, 3> input{1, 1, 1}, output{1, 1, 1};
  std::array<int64_t, 3> kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
};

// The largest element of each window, NaN before all; `indices`, where wanted, counts in the plane.
template <class T>
void max_pool(const PoolSizes& s, const T* in, T* out, int64_t* indices);

// What the sum of a window is divided by.
struct PoolDivisor {
  bool include_pad = true;
  int64_t fixed = 0;  // 0: the number of elements
};
template <class T>
void avg_pool(const PoolSizes& s, const PoolDivisor& d, const T* in, T* out);
template <class T>
void avg_pool_backward(const PoolSizes& s, const PoolDivisor& d, const T* grad, T* in_grad);

// Windows that cover the input: from floor(o * in / out) to ceil((o + 1) * in / out).
template <class T>
void adaptive_avg_pool(const PoolSizes& s, const T* in, T* out);
template <class T>
void adaptive_avg_pool_backward(const PoolSizes& s, const T* grad, T* in_grad);
template <class T>
void adaptive_max_pool(const PoolSizes& s, const T* in, T* out, int64_t* indices);

// samples: one number in [0, 1) for each plane and each of the last `spatial` dimensions; in two
// dimensions the first is that of the columns.
template <class T>
void fractional_max_pool(const PoolSizes& s, int64_t spatial, const T* samples, const T* in, T* out,
                         int64_t* indices);

}  // namespace lamina::cpu

// Rows of a table by index, and the sums of gradients that go back to them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/working.h"
#include "lamina/queue/parallel.h"

namespace lamina::kernels {

namespace {

Tensor as_rows(const Tensor& indices) { return readable(indices, ScalarType::Int64); }

int64_t checked_row(int64_t i, int64_t rows) {
  LAMINA_CHECK_INDEX(i >= 0 && i < rows, "embedding: index out of range in self; got ", i,
                     "; expected 0 to ", rows - 1);
  return i;
}

}  // namespace

void embedding(const Tensor& result, const Tensor& weight, const Tensor& indices, int64_t, bool,
               bool) {
  const Tensor at = as_rows(indices), table = contiguous_values(weight);
  const int64_t rows = table.size(0);
  const size_t bytes = static_cast<size_t>(table.size(1)) * item_size(table.dtype());
  const int64_t* index = at.data_as<int64_t>();
  auto* out = static_cast<char*>(result.data());
  const auto* in = static_cast<const char*>(table.data());
  const auto grain = std::max<int64_t>(1, 131072 / static_cast<int64_t>(bytes + 1));
  queue::parallel_for(0, at.numel(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto row = static_cast<size_t>(checked_row(index[i], rows));
      if (bytes > 0) std::memcpy(out + static_cast<size_t>(i) * bytes, in + row * bytes, bytes);
    }
  });
}

void embedding_backward(const Tensor& result, const Tensor& grad_output, const Tensor& indices,
                        int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
  const ScalarType type =
      is_complex(result.dtype()) ? result.dtype() : compute_type(result.dtype());
  LAMINA_CHECK_IMPLEMENTED(is_floating(type), "\"embedding_backward\" not implemented for '",
                           legacy_name(result.dtype()), "'");
  const Tensor at = as_rows(indices), g = readable(grad_output, type);
  const Written sums(result, type);
  zero_bytes(sums.tensor());
  const int64_t* index = at.data_as<int64_t>();
  const int64_t count = at.numel(), width = result.size(1);
  std::vector<int64_t> uses;
  if (scale_grad_by_freq) uses.resize(static_cast<size_t>(num_weights));
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] == padding_idx) continue;
    checked_row(index[i], num_weights);
    if (scale_grad_by_freq) ++uses[static_cast<size_t>(index[i])];
  }
  by_float(type, [&](auto zero) {
    using T = decltype(zero);
    T* out = sums.tensor().data_as<T>();
    const T* in = g.data_as<T>();
    // Columns are split, so that each sum runs in the order of the indices.
    const int64_t grain = std::max<int64_t>(64, 32768 / (count + 1));
    queue::parallel_for(0, width, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count; ++i) {
        if (index[i] == padding_idx) continue;
        T* to = out + index[i] * width;
        const T* from = in + i * width;
        const T factor = scale_grad_by_freq ? T(1) / T(uses[static_cast<size_t>(index[i])]) : T(1);
        if (scale_grad_by_freq)
          for (int64_t j = begin; j < end; ++j) to[j] += from[j] * factor;
        else
          for (int64_t j = begin; j < end; ++j) to[j] += from[j];
      }
    });
  });
  sums.finish();
}

void embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm,
                      double norm_type) {
  LAMINA_CHECK(self.dim() == 2, "embedding_renorm_: 'self' must be 2-D; got ", self);
  const Tensor at = as_rows(indices);
  std::vector<int64_t> rows(at.data_as<int64_t>(), at.data_as<int64_t>() + at.numel());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const Tensor wide = empty_contiguous({self.size(1)}, ScalarType::Float64, kCpu);
  for (const int64_t r : rows) {
    const Tensor row = kernels::select(self, 0, checked_row(r, self.size(0)));
    copy_values(wide, row);
    double* v = wide.data_as<double>();
    double norm = 0;
    for (int64_t j = 0; j < wide.numel(); ++j) {
      const double a = std::abs(v[j]);
      norm = std::isinf(norm_type) ? std::max(norm, a) : norm + std::pow(a, norm_type);
    }
    if (!std::isinf(norm_type)) norm = std::pow(norm, 1 / norm_type);
    if (!(norm > max_norm)) continue;
    // The small number keeps a row of zeros from dividing by zero.
    for (int64_t j = 0; j < wide.numel(); ++j) v[j] *= max_norm / (norm + 1e-7);
    copy_values(row, wide);
  }
}

}  // namespace lamina::kernels

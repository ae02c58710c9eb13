#include "lamina/kernels/matrices.h"

#include "lamina/core/error.h"
#include "lamina/transforms/batched.h"

namespace lamina::kernels {

Columns::Columns(IntList batch, int64_t rows, int64_t columns, ScalarType type)
    : rows_(rows), columns_(columns) {
  Sizes sizes(std::span<const int64_t>(batch.data(), batch.size()));
  sizes.push_back(columns);
  sizes.push_back(rows);
  const Tensor work = empty_contiguous(sizes, type, kCpu);
  Sizes strides(std::span<const int64_t>(work.strides()));
  const size_t n = sizes.size();
  std::swap(sizes[n - 1], sizes[n - 2]);
  std::swap(strides[n - 1], strides[n - 2]);
  view_ = alias_window(work, sizes, strides, 0);
  count_ = 1;
  for (const int64_t b : batch) count_ *= b;
  bytes_ = static_cast<size_t>(rows * columns) * item_size(type);
}

Columns::Columns(const Tensor& t) : Columns(batch_of(t), rows_of(t), columns_of(t), t.dtype()) {
  copy_values(view_, t);
}

std::vector<int64_t> batch_sources(IntList from, IntList to) {
  int64_t count = 1;
  for (const int64_t n : to) count *= n;
  std::vector<int64_t> sources(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, step = 1, at = 0;
    for (size_t d = to.size(), f = from.size(); d-- > 0;) {
      const int64_t index = rest % to[d];
      rest /= to[d];
      if (f == 0) continue;
      --f;
      if (from[f] != 1) at += index * step;
      step *= from[f];
    }
    sources[static_cast<size_t>(i)] = at;
  }
  return sources;
}

void check_info(const Tensor& info, const char* op, const char* before, const char* after) {
  if (info.is_meta()) return;
  // Inside vmap one sample that fails is enough, as in a loop.
  const Tensor values = contiguous_values(transforms::innermost(info));
  for (int64_t i = 0; i < values.numel(); ++i) {
    const int32_t k = ints(values)[i];
    if (k == 0) continue;
    const std::string place = info.dim() > 0 ? str("(Batch element ", i, "): ") : std::string();
    raise(ErrorKind::LinAlg, str(op, ": ", place, before, k, after));
  }
}

void check_inverse_info(const Tensor& info, const char* op) {
  check_info(
      info, op, "The diagonal element ",
      " is zero, the inversion could not be completed because the input matrix is singular.");
}
void check_solve_info(const Tensor& info, const char* op) {
  check_info(info, op, "The solver failed because the input matrix is singular (diagonal element ",
             " of U is zero).");
}
void check_lu_info(const Tensor& info, const char* op) {
  check_info(info, op, "The diagonal element ",
             " of U is zero and using it on lu_solve would result in a division by zero; linalg.lu "
             "and linalg.lu_factor_ex factor such matrices, too.");
}
void check_cholesky_info(const Tensor& info, const char* op) {
  check_info(info, op,
             "The factorization could not be completed because the input is not positive-definite "
             "(the leading minor of order ",
             " is not positive-definite).");
}
void check_ldl_info(const Tensor& info, const char* op) {
  check_info(info, op, "The diagonal element ",
             " of D is zero; the factorization is complete, but D is singular.");
}

}  // namespace lamina::kernels

// Batches of matrices for LAPACK: copies that lie column after column, loops over them, and the
// errors that a routine's info stands for.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "lamina/cpu/lapack.h"
#include "lamina/cpu/scratch.h"
#include "lamina/kernels/result.h"
#include "lamina/queue/parallel.h"
#include "lamina/shape/linalg.h"

namespace lamina::kernels {

// A batch of matrices of our own, column after column.
class Columns {
 public:
  // Uninitialized.
  Columns(IntList batch, int64_t rows, int64_t columns, ScalarType type);
  // The values of `t`.
  explicit Columns(const Tensor& t);

  const Tensor& tensor() const { return view_; }  // (..., rows, columns)
  int64_t count() const { return count_; }
  int64_t elements() const { return view_.numel(); }
  int rows() const { return static_cast<int>(rows_); }
  int columns() const { return static_cast<int>(columns_); }
  int leading() const { return static_cast<int>(std::max<int64_t>(rows_, 1)); }
  ScalarType type() const { return view_.dtype(); }
  char* at(int64_t i) const {
    return static_cast<char*>(view_.data()) + static_cast<size_t>(i) * bytes_;
  }
  char* element(int64_t i, int64_t row, int64_t column) const {
    return at(i) + static_cast<size_t>(column * rows_ + row) * item_size(type());
  }

 private:
  Tensor view_;
  int64_t rows_, columns_, count_;
  size_t bytes_;
};

// Chunks of a loop over `count` matrices of so many multiply-adds each; f(begin, end). Chunks
// depend on sizes alone, and each matrix is the work of one thread, so the bits do too.
template <class F>
void each_chunk(int64_t count, double work, F&& f) {
  const double grain = 262144 / std::max(work, 1.0);
  queue::parallel_for(0, count, static_cast<int64_t>(std::clamp(grain, 1.0, 1e6)), f);
}

// Element type of a workspace and how many of them.
inline size_t work_bytes(int64_t count, ScalarType type) {
  return cpu::bytes_of(std::max<int64_t>(count, 1), item_size(type));
}

// For each matrix of the batch `to` the number of that of the batch `from` which broadcasts to it.
std::vector<int64_t> batch_sources(IntList from, IntList to);

inline int32_t* ints(const Tensor& t) { return static_cast<int32_t*>(t.data()); }

// Raises LinAlg for the first matrix whose info is not zero: "op: (Batch element 3): " + before +
// the info + after. Does nothing on the meta device.
void check_info(const Tensor& info, const char* op, const char* before, const char* after);
void check_inverse_info(const Tensor& info, const char* op);
void check_solve_info(const Tensor& info, const char* op);
void check_lu_info(const Tensor& info, const char* op);
void check_cholesky_info(const Tensor& info, const char* op);
void check_ldl_info(const Tensor& info, const char* op);

}  // namespace lamina::kernels

// Kernels that move elements by index, on raw pointers. Indices are int64 and every one is checked
// against its bound before anything is read or written through it (a bad one raises Index or, where
// the peer does, Runtime). Duplicates accumulate in order of the index, whatever the number of
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lamina/core/scalar.h"
#include "lamina/core/scalar_type.h"

namespace lamina::cpu {

// A strided array: sizes and strides in elements, of equal length (at most 64).
struct Strided {
  void* data = nullptr;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;
};
struct ConstStrided {
  const void* data = nullptr;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;
  ConstStrided() = default;
  ConstStrided(const void* d, std::span<const int64_t> n, std::span<const int64_t> s)
      : data(d), sizes(n), strides(s) {}
  ConstStrided(const Strided& s) : data(s.data), sizes(s.sizes), strides(s.strides) {}  // NOLINT
};

enum class Reduction : uint8_t { Sum, Prod, Amax, Amin, Mean };

// --- along one dimension; `item` is the element size in bytes (1, 2, 4, 8 or 16)
// ------------------------------------- out[i][j] = self[index[i][j]][j] for dim 0; out has the
// sizes of index, index.size(d) <= self.size(d) for d != dim. Zero-dimensional operands count as
// one-dimensional of size 1: the caller passes them so.
void gather(const Strided& out, const ConstStrided& self, int dim, const ConstStrided& index,
            size_t item);
// self[index[i][j]][j] = src[i][j]; where indices repeat the last one (in order of index) stays.
void scatter(const Strided& self, int dim, const ConstStrided& index, const ConstStrided& src,
             size_t item);
void scatter_value(const Strided& self, int dim, const ConstStrided& index, const Scalar& value,
                   ScalarType dtype);
// self[index[i][j]][j] is reduced with src[i][j]. Without include_self the values of self that are
// hit are ignored.
void scatter_reduce(const Strided& self, int dim, const ConstStrided& index,
                    const ConstStrided& src, ScalarType dtype, Reduction reduction,
                    bool include_self = true);
inline void scatter_add(const Strided& self, int dim, const ConstStrided& index,
                        const ConstStrided& src, ScalarType dtype) {
  scatter_reduce(self, dim, index, src, dtype, Reduction::Sum);
}

// index is 1-d. out.size(dim) == index.size(0), other sizes equal.
void index_select(const Strided& out, const ConstStrided& self, int dim, const ConstStrided& index,
                  size_t item);
// self[index[i]] += alpha * src[i] along dim.
void index_add(const Strided& self, int dim, const ConstStrided& index, const ConstStrided& src,
               const Scalar& alpha, ScalarType dtype);
void index_copy(const Strided& self, int dim, const ConstStrided& index, const ConstStrided& src,
                size_t item);
void index_fill(const Strided& self, int dim, const ConstStrided& index, const Scalar& value,
                ScalarType dtype);
// out[i] = self.flatten()[index[i]]; negative indices count from the end.
void take(const Strided& out, const ConstStrided& self, const ConstStrided& index, size_t item);

// --- advanced indexing
// -------------------------------------------------------------------------------------------------
// The indexed dimensions of self come first in `indexed_sizes` and `indexed_strides` (one per index
// array); the index arrays are broadcast to `out.sizes` by strides of 0, over all dimensions of the
// result: in dimensions that self keeps whole an index array has stride 0, and `self` has stride 0
// in dimensions that come from the indices. Element: out[p] = self.data[sum_d p[d] *
// self.strides[d] + sum_k wrap(index_k[p]) * indexed_strides[k]]. Negative indices count from the
// end.
struct IndexArrays {
  std::span<const int64_t* const> data;
  std::span<const int64_t* const> strides;  // data.size() arrays of out.sizes.size() strides
  std::span<const int64_t> indexed_sizes;
  std::span<const int64_t> indexed_strides;
  std::span<const int> indexed_dims;  // for messages; may be empty
};
// self.sizes must equal out.sizes.
void index_get(const Strided& out, const ConstStrided& self, const IndexArrays& indices,
               size_t item);
// self[...] = values, or += with accumulate (in order of values); values has the sizes of self.
void index_put(const Strided& self, const IndexArrays& indices, const ConstStrided& values,
               ScalarType dtype, bool accumulate);

// --- masks: bool elements (one byte, 0 or 1)
// ---------------------------------------------------------------------------- mask has the sizes
// of self (broadcast by strides of 0).
void masked_fill(const Strided& self, const ConstStrided& mask, const Scalar& value,
                 ScalarType dtype);
int64_t count_nonzero(const ConstStrided& self, ScalarType dtype);
// out: contiguous, count elements, where count == count_nonzero(mask) (never writes more). mask and
// self have equal sizes.
void masked_select(void* out, int64_t count, const ConstStrided& self, const ConstStrided& mask,
                   size_t item);
// self[mask] = source in order; source is contiguous with `available` elements; raises Runtime if
// they do not suffice.
void masked_scatter(const Strided& self, const ConstStrided& mask, const void* source,
                    int64_t available, size_t item);
// Coordinates of the elements that are not zero, in row-major order; out is (count, ndim) with the
// given strides.
void nonzero(int64_t* out, int64_t count, int64_t out_row_stride, int64_t out_col_stride,
             const ConstStrided& self, ScalarType dtype);

// --- copies
// ---------------------------------------------------------------------------------------------------------------
// out = self, equal sizes, any strides, no conversion.
void copy_strided(const Strided& out, const ConstStrided& self, size_t item);
// Puts the inputs after each other along dim of out; sizes agree elsewhere and add up along dim.
void cat(const Strided& out, std::span<const ConstStrided> inputs, int dim, size_t item);

}  // namespace lamina::cpu

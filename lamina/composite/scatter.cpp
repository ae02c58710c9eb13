// Copies with a part replaced, writes by a flat index, reductions by index.
#include <algorithm>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

namespace {

// `view` shows a part of the fresh copy `whole`.
Tensor with_part(const Tensor& whole, const Tensor& view, const Tensor& src, const char* op) {
  LAMINA_CHECK(view.sizes() == src.sizes(), op,
               ": expected src to have a size equal to the slice of self; got ", src.sizes(),
               "; expected ", view.sizes());
  ops::copy_(view, src);
  return whole;
}
Tensor kept_layout(const Tensor& self) {
  return ops::clone(self, self.is_non_overlapping_and_dense() ? MemoryFormat::Preserve
                                                              : MemoryFormat::Contiguous);
}

}  // namespace

Tensor select_scatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  const Tensor whole = kept_layout(self);
  return with_part(whole, ops::select(whole, dim, index), src, "select_scatter");
}
Tensor slice_scatter(const Tensor& self, const Tensor& src, int64_t dim,
                     std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  const Tensor whole = kept_layout(self);
  return with_part(whole, ops::slice(whole, dim, start, end, step), src, "slice_scatter");
}
Tensor diagonal_scatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  const Tensor whole = kept_layout(self);
  return with_part(whole, ops::diagonal(whole, offset, dim1, dim2), src, "diagonal_scatter");
}
Tensor as_strided_scatter(const Tensor& self, const Tensor& src, IntList size, IntList stride,
                          std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  if (self.is_contiguous() && self.storage_offset() == 0) {
    const Tensor whole = ops::clone(self, MemoryFormat::Contiguous);
    return with_part(whole, ops::as_strided(whole, size, stride, offset), src,
                     "as_strided_scatter");
  }
  // The window counts in the storage, so all of it up to the end of self is copied.
  int64_t last = self.storage_offset();
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.strides()[d] > 0) last += (self.sizes()[d] - 1) * self.strides()[d];
  const int64_t bytes = static_cast<int64_t>(self.impl()->storage()->nbytes());
  const int64_t all = std::max(self.numel() == 0 ? int64_t{0} : last + 1,
                               bytes / static_cast<int64_t>(item_size(self.dtype())));
  const Tensor flat = ops::clone(ops::as_strided(self, {all}, {1}, 0), MemoryFormat::Contiguous);
  const Tensor whole = ops::as_strided(flat, self.sizes(), self.strides(), self.storage_offset());
  return with_part(whole, ops::as_strided(whole, size, stride, offset), src, "as_strided_scatter");
}

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  LAMINA_CHECK(index.dtype() == ScalarType::Int64,
               "put_: put_(): Expected a long tensor for index, but got ",
               legacy_name(index.dtype()));
  LAMINA_CHECK(self.dtype() == source.dtype(),
               "put_: put_(): self and source expected to have the same dtype; got ", self, " and ",
               source);
  LAMINA_CHECK_INDEX(index.numel() == source.numel(),
                     "put_: put_(): Expected source and index to have the same number of elements, "
                     "but got source.numel() = ",
                     source.numel(), ", index.numel() = ", index.numel());
  LAMINA_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                     "put_: put_(): Tried to put elements into an empty tensor");
  if (index.numel() == 0) return kept_layout(self);
  const Tensor flat = ops::reshape(ops::clone(self, MemoryFormat::Contiguous), {-1});
  const std::vector<Tensor> at{ops::reshape(index, {-1})};
  return ops::reshape(ops::index_put_(flat, at, ops::reshape(source, {-1}), accumulate),
                      self.sizes());
}

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    std::string_view reduce, bool include_self) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_reduce");
  LAMINA_CHECK_INDEX(index.dim() <= 1,
                     "index_reduce: index_reduce_(): Index is supposed to be a vector; got ",
                     index);
  LAMINA_CHECK(index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32,
               "index_reduce: index_reduce_(): Expected dtype int32/int64 for index; got ", index);
  LAMINA_CHECK(
      self.dtype() == source.dtype(),
      "index_reduce: index_reduce_(): self and source expected to have the same dtype; got ", self,
      " and ", source);
  LAMINA_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
               "index_reduce: index_reduce_(): Expected reduce to be one of prod, mean, amax or "
               "amin but got ",
               reduce, ".");
  LAMINA_CHECK_INDEX(
      source.dim() == 0
          ? index.numel() == 1
          : source.dim() == std::max<int64_t>(self.dim(), 1) && source.sizes()[d] == index.numel(),
      "index_reduce: index_reduce_(): Number of indices should be equal to source.size(dim); got ",
      index, " and ", source);
  for (int64_t i = 0; i < std::min(source.dim(), self.dim()); ++i)
    LAMINA_CHECK_INDEX(i == d || source.sizes()[i] == self.sizes()[i],
                       "index_reduce: index_reduce_(): source and self differ beside `dim`; got ",
                       source, " and ", self);
  Sizes shape(static_cast<size_t>(source.dim()), 1);
  if (source.dim() > 0) shape[d] = index.numel();
  const Tensor at =
      ops::expand(ops::view(ops::_to_dtype(index, ScalarType::Int64), shape), source.sizes());
  return ops::scatter_reduce(self, dim, at, source, reduce, include_self);
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  LAMINA_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer; got ", size);
  const Tensor found = ops::nonzero(self);
  const int64_t count = std::min(found.sizes()[0], size);
  const Tensor out = ops::full({size, self.dim()}, Scalar(fill_value), ScalarType::Int64,
                               std::nullopt, self.device());
  if (count > 0 && self.dim() > 0)
    ops::copy_(ops::slice(out, 0, 0, count, 1), ops::slice(found, 0, 0, count, 1));
  return out;
}

namespace {
// Indices of masked places may be anything; they are brought to where reading is allowed.
std::vector<Tensor> bounded(const Tensor& self, TensorList indices) {
  std::vector<Tensor> out;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined() || static_cast<int64_t>(d) >= self.dim()) {
      out.push_back(indices[d]);
      continue;
    }
    const int64_t n = self.sizes()[d];
    out.push_back(ops::clamp(indices[d], std::optional<Scalar>(-n), std::optional<Scalar>(n - 1)));
  }
  return out;
}
}  // namespace

Tensor unsafe_masked_index(const Tensor& self, const Tensor& mask, TensorList indices,
                           const Scalar& fill) {
  if (self.numel() == 0) {
    Sizes sizes(mask.sizes());
    for (const Tensor& index : indices)
      if (index.defined()) sizes = broadcast_sizes(sizes, index.sizes(), "_unsafe_masked_index");
    return ops::full(sizes, fill, self.dtype(), std::nullopt, self.device());
  }
  return ops::masked_fill(ops::index(self, bounded(self, indices)), ops::logical_not(mask), fill);
}
Tensor unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                          TensorList indices, const Tensor& values) {
  if (self.numel() == 0) return ops::clone(self);
  const Tensor kept = ops::masked_fill(values, ops::logical_not(mask), Scalar(int64_t{0}));
  return ops::index_put(self, bounded(self, indices), kept, true);
}

Tensor chunk_cat(TensorList tensors, int64_t dim, int64_t num_chunks) {
  LAMINA_CHECK(num_chunks >= 1, "_chunk_cat: expects positive num_chunks; got ", num_chunks);
  LAMINA_CHECK(!tensors.empty(), "_chunk_cat: expects a non-empty input tensor list");
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    const int64_t d = wrap_dim(dim, tensors[0].dim(), "_chunk_cat");
    LAMINA_CHECK(t.dim() > d && t.numel() > 0, "_chunk_cat: expects non-empty tensors; got ", t);
    const int64_t n = t.sizes()[d], rows = n / num_chunks + (n % num_chunks != 0);
    Tensor whole = t;
    if (rows * num_chunks != n) {
      Sizes padded{std::span<const int64_t>(t.sizes())};
      padded[d] = rows * num_chunks;
      whole = ops::slice_backward(t, padded, d, 0, n, 1);
    }
    Sizes shape;
    for (int64_t i = 0; i < d; ++i) shape.push_back(t.sizes()[i]);
    shape.push_back(num_chunks);
    shape.push_back(-1);
    parts.push_back(ops::reshape(whole, shape));
  }
  return ops::cat(parts, wrap_dim(dim, tensors[0].dim(), "_chunk_cat") + 1);
}

}  // namespace lamina::composite

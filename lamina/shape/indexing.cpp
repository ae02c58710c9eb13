// Shape rules of joining and of operators by index.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/shape/promotion.h"

namespace lamina::shape {

namespace {
Sizes copy(IntList v) { return Sizes(std::span<const int64_t>(v)); }
}  // namespace

ResultMeta cat_shape(TensorList tensors, int64_t dim) {
  LAMINA_CHECK_VALUE(!tensors.empty(), "cat: expected a non-empty list of Tensors");
  ResultType type;
  const Tensor* first = nullptr;
  for (const Tensor& t : tensors) {
    LAMINA_CHECK(t.dim() > 0, "cat: zero-dimensional tensor cannot be concatenated");
    type.add(t);
    if (!first && !(t.dim() == 1 && t.numel() == 0)) first = &t;
  }
  if (!first) first = &tensors[0];
  const int64_t d = wrap_dim(dim, first->dim(), "cat");
  Sizes sizes = copy(first->sizes());
  Dim total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (t.dim() == 1 && t.numel() == 0 && first->dim() != 1) continue;
    LAMINA_CHECK(t.dim() == first->dim(), "cat: Tensors must have same number of dimensions: got ",
                 first->dim(), " and ", t.dim());
    for (int64_t k = 0; k < t.dim(); ++k)
      LAMINA_CHECK(k == d || t.sizes()[k] == sizes[k],
                   "cat: Sizes of tensors must match except in dimension ", d, ". Expected size ",
                   sizes[k], " but got size ", t.sizes()[k], " for tensor number ", i,
                   " in the list.");
    total += Dim(t.sizes()[d]);
  }
  sizes[d] = total;
  return {sizes, type.get(), first->device()};
}

ResultMeta gather_shape(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const int64_t d = wrap_dim(dim, self.dim(), "gather");
  if (index.numel() != 0) {
    LAMINA_CHECK(index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32,
                 "gather: Expected dtype int64 for index; got ", index);
    LAMINA_CHECK(
        std::max<int64_t>(index.dim(), 1) == std::max<int64_t>(self.dim(), 1),
        "gather: Index tensor must have the same number of dimensions as input tensor; got ", index,
        " and ", self);
    for (int64_t i = 0; i < std::min(self.dim(), index.dim()); ++i)
      LAMINA_CHECK(i == d || index.sizes()[i] <= self.sizes()[i],
                   "gather: Size does not match at dimension ", i, " expected index ",
                   index.sizes(), " to be no larger than self ", self.sizes(),
                   " apart from dimension ", d);
  }
  return {copy(index.sizes()), self.dtype(), self.device()};
}

ResultMeta index_select_shape(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim(dim, self.dim(), "index_select");
  LAMINA_CHECK_INDEX(index.dim() <= 1, "index_select: Index is supposed to be a vector; got ",
                     index);
  LAMINA_CHECK(index.dtype() == ScalarType::Int64 || index.dtype() == ScalarType::Int32,
               "index_select: Expected dtype int32 or int64 for index; got ", index);
  LAMINA_CHECK(self.dim() > 0 || index.numel() == 1,
               "index_select: Index to scalar can have only 1 value, got ", index.numel(),
               " value(s)");
  Sizes sizes = copy(self.sizes());
  if (self.dim() > 0) sizes[d] = index.numel();
  return {sizes, self.dtype(), self.device()};
}

ResultMeta select_backward_shape(const Tensor& grad_output, IntList input_sizes, int64_t, int64_t) {
  return {copy(input_sizes), grad_output.dtype(), grad_output.device()};
}
ResultMeta slice_backward_shape(const Tensor& grad_output, IntList input_sizes, int64_t,
                                std::optional<int64_t>, std::optional<int64_t>, int64_t) {
  return {copy(input_sizes), grad_output.dtype(), grad_output.device()};
}
ResultMeta diagonal_backward_shape(const Tensor& grad_output, IntList input_sizes, int64_t, int64_t,
                                   int64_t) {
  return {copy(input_sizes), grad_output.dtype(), grad_output.device()};
}

ResultMeta range_shape(const Scalar&, const Scalar&, int64_t count, ScalarType dtype,
                       Device device) {
  return {Sizes{count}, dtype, device};
}
ResultMeta randperm_shape(int64_t n, const Generator&, ScalarType dtype, Device device) {
  LAMINA_CHECK(n >= 0, "randperm: n must be non-negative, got ", n);
  return {Sizes{n}, dtype, device};
}

}  // namespace lamina::shape

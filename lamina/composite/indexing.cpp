// Composite indexing.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

Tensor stack(TensorList tensors, int64_t dim) {
  LAMINA_CHECK(!tensors.empty(), "stack: stack expects a non-empty TensorList");
  const int64_t d = wrap_dim(dim, tensors[0].dim() + 1, "stack");
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    LAMINA_CHECK(tensors[i].sizes() == tensors[0].sizes(),
                 "stack: stack expects each tensor to be equal size, but got ", tensors[0].sizes(),
                 " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
    parts.push_back(ops::unsqueeze(tensors[i], d));
  }
  return ops::cat(parts, d);
}

namespace {
template <class Value>
Tensor fill_masked(const Tensor& self, const Tensor& mask, const Value& value) {
  const Sizes sizes = broadcast_sizes(self.sizes(), mask.sizes(), "masked_fill");
  const Tensor wide = self.sizes() == IntList(sizes) ? self : ops::expand(self, sizes);
  Tensor copy = ops::clone(wide, wide.is_non_overlapping_and_dense() ? MemoryFormat::Preserve
                                                                     : MemoryFormat::Contiguous);
  return ops::masked_fill_(copy, mask, value);
}
}  // namespace
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return fill_masked(self, mask, value);
}
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return fill_masked(self, mask, value);
}

Tensor index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  return ops::index_put_(ops::clone(self), indices, values, accumulate);
}

Tensor take(const Tensor& self, const Tensor& index) {
  LAMINA_CHECK(index.dtype() == ScalarType::Int64,
               "take: Expected a long tensor for index, but got ", legacy_name(index.dtype()));
  LAMINA_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                     "take: tried to take from an empty tensor");
  const Tensor flat = ops::reshape(self, {-1});
  const std::vector<Tensor> at{index};
  return ops::index(flat, at);
}

Tensor index_fill_tensor(const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& value) {
  LAMINA_CHECK(value.dim() == 0,
               "index_fill: only supports a 0-dimensional value tensor; got a value with ",
               value.dim(), " dimensions; expected none");
  if (self.dim() == 0) {
    wrap_dim(dim, 0, "index_fill");
    return ops::reshape(index_fill_tensor(ops::unsqueeze(self, 0), 0, index, value), {});
  }
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  sizes[wrap_dim(dim, self.dim(), "index_fill")] = index.numel();
  return ops::index_copy(self, dim, index, ops::expand(ops::_to_dtype(value, self.dtype()), sizes));
}

}  // namespace lamina::composite

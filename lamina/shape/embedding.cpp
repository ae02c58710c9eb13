// Shape rules of embedding.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"

namespace lamina::shape {

namespace {
void check_indices(const Tensor& indices, const char* op) {
  LAMINA_CHECK(indices.dtype() == ScalarType::Int64 || indices.dtype() == ScalarType::Int32, op,
               ": Expected tensor for argument #1 'indices' to have one of the following scalar "
               "types: Long, Int; but got ",
               legacy_name(indices.dtype()), " instead");
}
}  // namespace

ResultMeta embedding_shape(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  LAMINA_CHECK(weight.dim() == 2, "embedding: 'weight' must be 2-D; got ", weight);
  check_indices(indices, "embedding");
  Sizes sizes(std::span<const int64_t>(indices.sizes()));
  sizes.push_back(weight.size(1));
  return {sizes, weight.dtype(), weight.device()};
}

ResultMeta embedding_backward_shape(const Tensor& grad_output, const Tensor& indices,
                                    int64_t num_weights, int64_t, bool) {
  check_indices(indices, "embedding_dense_backward");
  LAMINA_CHECK(grad_output.dim() == indices.dim() + 1 && num_weights >= 0,
               "embedding_dense_backward: the gradient has one dimension more than the indices; "
               "got ",
               grad_output, " and ", indices);
  for (int64_t i = 0; i < indices.dim(); ++i)
    LAMINA_CHECK(grad_output.size(i) == indices.size(i),
                 "embedding_dense_backward: sizes differ; got ", grad_output, " and ", indices);
  return {Sizes{num_weights, grad_output.size(-1)}, grad_output.dtype(), grad_output.device()};
}

}  // namespace lamina::shape

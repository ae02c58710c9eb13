// Derivatives of writing by index where an index names a place several times: the last value stays,
// and only it has a derivative.
#include "lamina/autograd/formulas.h"
#include "lamina/shape/broadcast.h"

namespace lamina::autograd::formulas {

namespace {
Tensor positions(IntList sizes, int64_t n) {
  const Tensor all = ops::arange(Scalar(0), Scalar(n), Scalar(1), ScalarType::Int64);
  return ops::reshape(all, sizes);
}
Tensor nobody(IntList sizes) { return ops::full(sizes, Scalar(-1), ScalarType::Int64); }
}  // namespace

Tensor without_overwritten_scatter(const Tensor& grad, IntList sizes, int64_t dim,
                                   const Tensor& index) {
  if (index.numel() < 2 || sizes.empty()) return grad;
  // The same operator on numbers of writers tells which of them came last.
  const Tensor writer = positions(index.sizes(), index.numel());
  const Tensor last = ops::scatter_(nobody(sizes), dim, index, writer);
  return ops::masked_fill(grad, ops::ne(ops::gather(last, dim, index), writer), Scalar(0));
}

Tensor without_overwritten_copy(const Tensor& grad, IntList sizes, int64_t dim,
                                const Tensor& index) {
  if (index.numel() < 2 || sizes.empty()) return grad;
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "index_copy");
  const Tensor writer = positions({index.numel()}, index.numel());
  const Tensor last = ops::index_copy_(nobody({sizes[d]}), 0, index, writer);
  Sizes shape(sizes.size(), 1);
  shape[d] = index.numel();
  const Tensor lost = ops::ne(ops::index_select(last, 0, index), writer);
  return ops::masked_fill(grad, ops::view(lost, shape), Scalar(0));
}

Tensor without_overwritten_put(const Tensor& grad, IntList sizes, TensorList indices) {
  if (grad.numel() < 2) return grad;
  const Tensor writer = positions(grad.sizes(), grad.numel());
  const Tensor last = ops::index_put_(nobody(sizes), indices, writer, false);
  return ops::masked_fill(grad, ops::ne(ops::index(last, indices), writer), Scalar(0));
}

Tensor index_put_values_grad(const Tensor& grad, TensorList indices, IntList value_sizes,
                             bool accumulate) {
  Tensor g = ops::index(grad, indices);
  if (!accumulate) g = without_overwritten_put(g, grad.sizes(), indices);
  return ops::sum_to_size(g, value_sizes);
}

}  // namespace lamina::autograd::formulas

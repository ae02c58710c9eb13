#include "lamina/autograd/formulas.h"

#include "lamina/shape/reduce.h"

namespace lamina::autograd::formulas {

Tensor fit_dtype(const Tensor& grad, ScalarType dtype) {
  if (!grad.defined() || grad.dtype() == dtype) return grad;
  const Tensor g = grad.is_complex() && !is_complex(dtype) ? ops::real(grad) : grad;
  return g.dtype() == dtype ? g : ops::_to_dtype(g, dtype);
}

std::vector<Tensor> fit_dtype(const std::vector<Tensor>& grads,
                              const std::vector<ScalarType>& dtypes) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < grads.size(); ++i) out.push_back(fit_dtype(grads[i], dtypes[i]));
  return out;
}

Tensor fit(const Tensor& grad, IntList sizes, ScalarType dtype) {
  if (!grad.defined()) return grad;
  return fit_dtype(grad.sizes() == sizes ? grad : ops::sum_to_size(grad, sizes), dtype);
}

Scalar conj_of(const Scalar& s) { return s.is_complex() ? Scalar(std::conj(s.to_complex())) : s; }
Tensor conj_of(const Tensor& t) { return t.is_complex() ? ops::conj(t) : t; }

Tensor unreduce(const Tensor& t, IntList sizes, std::optional<IntList> dims, bool keepdim) {
  if (keepdim || sizes.empty()) return t;
  const DimMask mask = reduced_dims(static_cast<int64_t>(sizes.size()), dims, true, "backward");
  return ops::view(ops::contiguous(t), reduced_sizes(sizes, mask, true));
}

Tensor spread(const Tensor& grad, IntList sizes, std::optional<IntList> dims, bool keepdim) {
  return ops::expand(unreduce(grad, sizes, dims, keepdim), sizes);
}

int64_t reduced_count(IntList sizes, std::optional<IntList> dims) {
  const DimMask mask = reduced_dims(static_cast<int64_t>(sizes.size()), dims, true, "backward");
  int64_t n = 1;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (mask[i]) n *= sizes[i];
  return n;
}

}  // namespace lamina::autograd::formulas

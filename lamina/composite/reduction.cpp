// Composite reductions, softmax, sums to a size.
#include "lamina/core/defaults.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/reduce.h"

namespace lamina::composite {

Tensor logsumexp(const Tensor& self, IntList dim, bool keepdim) {
  if (self.is_complex()) {
    // The largest real part is taken out; it carries no gradient.
    const Tensor top = ops::detach(ops::amax(ops::real(self), dim, true));
    const Tensor shift = ops::where(ops::isinf(top), Scalar(0), top);
    const Tensor sum = ops::log(ops::sum(ops::exp(ops::sub(self, shift)), dim, true));
    const Tensor out = ops::add(sum, shift);
    return keepdim ? out : ops::squeeze(out, dim);
  }
  if (is_integral(self.dtype(), true))
    return ops::_logsumexp(ops::_to_dtype(self, default_dtype()), dim, keepdim);
  return ops::_logsumexp(self, dim, keepdim);
}

namespace {
template <class F>
Tensor with_type(const Tensor& self, std::optional<ScalarType> dtype, F&& f) {
  // Half precision asked for in float32 is converted inside the kernel.
  if (dtype && *dtype == ScalarType::Float32 && is_reduced_floating(self.dtype()))
    return f(self, true);
  return f(dtype ? ops::_to_dtype(self, *dtype) : self, false);
}
}  // namespace

Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return with_type(self, dtype,
                   [&](const Tensor& x, bool to_float) { return ops::_softmax(x, dim, to_float); });
}
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return with_type(self, dtype, [&](const Tensor& x, bool to_float) {
    return ops::_log_softmax(x, dim, to_float);
  });
}

Tensor sum_to_size(const Tensor& self, IntList size) {
  LAMINA_CHECK(is_expandable(size, self.sizes()), "sum_to_size: size {", size,
               "} is not expandable to size {", self.sizes(), "}.");
  if (size.empty()) return ops::sum(self);
  const int64_t lead = self.dim() - static_cast<int64_t>(size.size());
  Sizes dims;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i < lead || (size[i - lead] == 1 && self.sizes()[i] != 1)) dims.push_back(i);
  if (dims.empty()) return self;
  const Tensor sum = ops::sum(self, dims, true);
  return lead > 0 ? ops::view(sum, size) : sum;
}

std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending) {
  return ops::sort(self, std::optional<bool>(true), dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(sort(self, dim, descending));
}

}  // namespace lamina::composite

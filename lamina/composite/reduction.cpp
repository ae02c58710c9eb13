// Composite reductions, softmax, sums to a size.
#include <cmath>
#include <limits>

#include "lamina/autograd/formulas.h"
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

Tensor vector_norm(const Tensor& self, const Scalar& ord, std::optional<IntList> dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(self.dtype());
  LAMINA_CHECK(is_floating(type) || is_complex(type),
               "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
               legacy_name(type));
  LAMINA_CHECK(!ord.is_complex(), "linalg.vector_norm: Expected a non-complex ord");
  const double p = ord.to_double();
  const Tensor x = dtype ? ops::_to_dtype(self, type) : self;
  if (x.dim() == 0) {
    const Tensor one = ops::reshape(x, IntList({1}));
    return ops::reshape(vector_norm(one, ord, IntList({0}), false, std::nullopt), IntList());
  }
  if (p == 2 && !is_complex(type))
    return ops::_norm2(x, dim && !dim->empty() ? dim : std::nullopt, keepdim, std::nullopt);
  Sizes dims;
  if (dim)
    for (const int64_t d : *dim) dims.push_back(d);
  if (dims.empty())
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  if (p < 0 || std::isinf(p))
    for (const int64_t d : dims)
      LAMINA_CHECK(
          x.size(d) > 0, "linalg.vector_norm: cannot compute the ", p, " norm on the dimension ", d,
          " because this dimension is empty and the operation does not have an identity; got ", x);
  // Powers leave the range of the 16-bit types long before the norm does.
  if (type == ScalarType::Float16 || type == ScalarType::BFloat16)
    return ops::_to_dtype(
        vector_norm(ops::_to_dtype(x, ScalarType::Float32), ord, dim, keepdim, std::nullopt), type);
  const Tensor size = ops::abs(x);
  if (std::isinf(p)) return p > 0 ? ops::amax(size, dims, keepdim) : ops::amin(size, dims, keepdim);
  if (p == 0) return ops::sum(ops::_to_dtype(size != Scalar(0), size.dtype()), dims, keepdim);
  if (p == 1) return ops::sum(size, dims, keepdim);
  // Zeros are kept out of powers whose slope there is infinite, so that no gradient becomes NaN.
  Tensor powers;
  if (p == 2) {
    powers = ops::square(size);
  } else if (p > 0 && p < 2) {
    const Tensor zero = size == Scalar(0);
    powers = ops::where(zero, Scalar(0.0), ops::pow(ops::where(zero, Scalar(1.0), size), ord));
  } else {
    powers = ops::pow(size, ord);
  }
  const Tensor total = ops::sum(powers, dims, keepdim);
  const Tensor zero = total == Scalar(0);
  const Tensor root = ops::pow(ops::where(zero, Scalar(1.0), total), Scalar(1 / p));
  Tensor result =
      ops::where(zero, Scalar(p > 0 ? 0.0 : std::numeric_limits<double>::infinity()), root);
  if (p < 0) result = ops::where(ops::isinf(total), Scalar(0.0), result);
  return result;
}

}  // namespace lamina::composite

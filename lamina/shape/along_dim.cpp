// Shape rules of operators along one dimension.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/shape/promotion.h"
#include "lamina/shape/reduce.h"

namespace lamina::shape {

namespace {
Sizes copy(IntList v) { return Sizes(std::span<const int64_t>(v)); }
}  // namespace

std::array<ResultMeta, 2> extremum_shape(const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim(), "max");
  LAMINA_CHECK(!is_complex(self.dtype()), "max: complex numbers have no order; got ", self);
  LAMINA_CHECK_INDEX(self.dim() == 0 || self.sizes()[d] > 0, "max: Expected reduction dim ", dim,
                     " to have non-zero size; got ", self);
  DimMask mask;
  if (self.dim() > 0) mask.set(d);
  const Sizes sizes = reduced_sizes(self.sizes(), mask, keepdim);
  return {ResultMeta{sizes, self.dtype(), self.device()},
          ResultMeta{sizes, ScalarType::Int64, self.device()}};
}

ResultMeta scan_shape(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  wrap_dim(dim, self.dim(), "cumsum");
  const ScalarType t =
      dtype.value_or(is_integral(self.dtype(), true) ? ScalarType::Int64 : self.dtype());
  return {copy(self.sizes()), t, self.device()};
}

std::array<ResultMeta, 2> running_extremum_shape(const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim(), "cummax");
  LAMINA_CHECK_IMPLEMENTED(!is_complex(self.dtype()), "cummax: complex numbers have no order; got ",
                           self);
  return {ResultMeta{copy(self.sizes()), self.dtype(), self.device()},
          ResultMeta{copy(self.sizes()), ScalarType::Int64, self.device()}};
}
ResultMeta logcumsumexp_shape(const Tensor& self, int64_t dim) {
  wrap_dim(dim, self.dim(), "logcumsumexp");
  LAMINA_CHECK_IMPLEMENTED(is_floating(self.dtype()),
                           "\"logcumsumexp_out_cpu\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  return {copy(self.sizes()), self.dtype(), self.device()};
}
std::array<ResultMeta, 2> frexp_shape(const Tensor& self) {
  LAMINA_CHECK(is_floating(self.dtype()),
               "frexp: torch.frexp() only supports floating-point dtypes; got ", self);
  return {ResultMeta{copy(self.sizes()), self.dtype(), self.device()},
          ResultMeta{copy(self.sizes()), ScalarType::Int32, self.device()}};
}

ResultMeta fft_shape(const Tensor& self, IntList dim, int64_t, bool) {
  LAMINA_CHECK(is_complex(self.dtype()), "_fft_c2c: expected a complex tensor; got ", self);
  for (const int64_t d : dim) {
    const int64_t n = self.sizes()[wrap_dim(d, self.dim(), "fft")];
    LAMINA_CHECK(n >= 1, "fft: Invalid number of data points (", n, ") specified; got ", self);
  }
  return {copy(self.sizes()), self.dtype(), self.device()};
}

ResultMeta softmax_shape(const Tensor& self, int64_t dim, bool half_to_float) {
  wrap_dim(dim, self.dim(), "softmax");
  LAMINA_CHECK_IMPLEMENTED(is_floating(self.dtype()) && !is_float8(self.dtype()),
                           "\"softmax_lastdim_kernel_impl\" not implemented for '",
                           legacy_name(self.dtype()), "'");
  return {copy(self.sizes()), half_to_float ? ScalarType::Float32 : self.dtype(), self.device()};
}

ResultMeta softmax_backward_shape(const Tensor& grad_output, const Tensor& output, int64_t dim) {
  wrap_dim(dim, output.dim(), "softmax_backward");
  LAMINA_CHECK(grad_output.sizes() == output.sizes(), "softmax_backward: sizes differ; got ",
               grad_output, " and ", output);
  for (const Tensor* t : {&grad_output, &output})
    LAMINA_CHECK_IMPLEMENTED(is_floating(t->dtype()) && !is_float8(t->dtype()),
                             "\"softmax_backward\" not implemented for '", legacy_name(t->dtype()),
                             "'");
  return {copy(grad_output.sizes()), promote_types(grad_output.dtype(), output.dtype()),
          grad_output.device()};
}

std::array<ResultMeta, 2> sort_shape(const Tensor& self, std::optional<bool>, int64_t dim, bool) {
  wrap_dim(dim, self.dim(), "sort");
  LAMINA_CHECK(!is_complex(self.dtype()), "sort: complex numbers have no order; got ", self);
  return {ResultMeta{copy(self.sizes()), self.dtype(), self.device()},
          ResultMeta{copy(self.sizes()), ScalarType::Int64, self.device()}};
}

std::array<ResultMeta, 2> topk_shape(const Tensor& self, int64_t k, int64_t dim, bool, bool) {
  const int64_t d = wrap_dim(dim, self.dim(), "topk");
  LAMINA_CHECK(!is_complex(self.dtype()), "topk: complex numbers have no order; got ", self);
  LAMINA_CHECK(k >= 0 && k <= (self.dim() == 0 ? 1 : self.sizes()[d]),
               "topk: selected index k out of range; got k=", k, " for ", self);
  Sizes sizes = copy(self.sizes());
  if (self.dim() > 0) sizes[d] = k;
  return {ResultMeta{sizes, self.dtype(), self.device()},
          ResultMeta{sizes, ScalarType::Int64, self.device()}};
}

}  // namespace lamina::shape

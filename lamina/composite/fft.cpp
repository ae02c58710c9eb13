// Transforms of real tensors, by way of complex ones.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"

namespace lamina::composite {

Tensor fft_r2c(const Tensor& self, IntList dim, int64_t normalization, bool onesided) {
  LAMINA_CHECK(is_floating(self.dtype()), "_fft_r2c: expected a real floating point tensor; got ",
               self);
  const Tensor full =
      ops::_fft_c2c(ops::_to_dtype(self, to_complex(self.dtype())), dim, normalization, true);
  if (!onesided || dim.empty()) return full;
  const int64_t last = wrap_dim(dim[dim.size() - 1], self.dim(), "_fft_r2c");
  return ops::slice(full, last, 0, self.sizes()[last] / 2 + 1, 1);
}

Tensor fft_c2r(const Tensor& self, IntList dim, int64_t normalization, int64_t last_dim_size) {
  LAMINA_CHECK(self.is_complex(), "_fft_c2r: expected a complex tensor; got ", self);
  LAMINA_CHECK(!dim.empty() && last_dim_size >= 1, "_fft_c2r: Invalid number of data points (",
               last_dim_size, ") specified");
  const int64_t last = wrap_dim(dim[dim.size() - 1], self.dim(), "_fft_c2r");
  const int64_t half = last_dim_size / 2 + 1;
  LAMINA_CHECK(self.sizes()[last] >= half, "_fft_c2r: the last dimension is too small; got ", self,
               "; expected at least ", half);
  // All other dimensions first; then the other half is the conjugate, backwards.
  Tensor x = ops::slice(self, last, 0, half, 1);
  const int64_t n = last_dim_size;
  Sizes others;
  for (size_t i = 0; i + 1 < dim.size(); ++i) others.push_back(dim[i]);
  if (!others.empty()) x = ops::_fft_c2c(x, others, normalization, false);
  const int64_t mirrored = n - half;
  if (mirrored > 0) {
    const Tensor middle = ops::slice(x, last, 1, 1 + mirrored, 1);
    x = ops::cat(std::vector<Tensor>{x, ops::conj_physical(ops::flip(middle, {last}))}, last);
  }
  return ops::clone(ops::real(ops::_fft_c2c(x, {last}, normalization, false)),
                    MemoryFormat::Contiguous);
}

}  // namespace lamina::composite

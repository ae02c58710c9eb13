// Fourier transforms of tensors, dimension by dimension.
#include "lamina/cpu/fft.h"

#include <cmath>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"

namespace lamina::kernels {

void fft_c2c(const Tensor& result, const Tensor& self, IntList dim, int64_t normalization,
             bool forward) {
  if (result.numel() == 0) return;
  // One kernel, in double: the digits that float32 has are right, whatever the length.
  Tensor work = empty_contiguous(self.sizes(), ScalarType::Complex128, kCpu);
  copy_values(work, self);
  double count = 1;
  for (const int64_t d : dim) count *= static_cast<double>(self.size(d));
  double scale = normalization == 1 ? 1 / std::sqrt(count) : normalization == 2 ? 1 / count : 1;
  if (dim.empty()) scale = 1;
  for (const int64_t given : dim) {
    const int64_t d = wrap_dim(given, self.dim(), "fft");
    const int64_t n = self.size(d);
    const Tensor rows = contiguous_values(kernels::transpose(work, d, -1));
    cpu::fft_rows(static_cast<std::complex<double>*>(rows.data()), rows.numel() / n, n, forward,
                  scale);
    work = kernels::transpose(rows, d, -1);
    scale = 1;
  }
  copy_values(result, work);
}

}  // namespace lamina::kernels

// Discrete Fourier transforms of rows, in double.
#pragma once

#include <complex>
#include <cstdint>

namespace lamina::cpu {

// Transforms `rows` rows of n adjacent numbers in place: X[k] = scale * sum_j x[j] exp(-+2 pi i j k
// / n).
void fft_rows(std::complex<double>* data, int64_t rows, int64_t n, bool forward, double scale);

}  // namespace lamina::cpu

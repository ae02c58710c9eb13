// The innermost loops of Fourier transforms of several rows; fft_passes.inl is compiled once per
// instruction set, with the same bits.
#pragma once

#include <complex>
#include <cstdint>

namespace lamina::cpu {

inline constexpr int kFftLanes = 8;  // rows that go together, one in each lane
inline constexpr int64_t kLargestRadix = 31;

// One factor of a transform of length n that sorts itself (Stockham): `done` transforms of length
// radix * left become done * radix of length left. Element i has its real parts at x + i *
// kFftLanes, its imaginary ones n * kFftLanes behind; roots[k] is exp(-2 pi i k / n).
struct FftPass {
  const std::complex<double>* roots;
  int64_t n, radix, left, done;
  const double* x;
  double* y;
};

namespace fft_baseline {
void run(const FftPass& pass);
}
#if defined(__x86_64__)
namespace fft_avx2 {
void run(const FftPass& pass);
}
#endif

}  // namespace lamina::cpu

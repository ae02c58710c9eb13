// See fft_passes.h. LAMINA_FFT_LEVEL is the namespace, LAMINA_FFT_BYTES the size of a vector.
#include <cstring>

#include "lamina/cpu/fft_passes.h"

namespace lamina::cpu::LAMINA_FFT_LEVEL {
namespace {

using Vector [[gnu::vector_size(LAMINA_FFT_BYTES)]] = double;
constexpr int kWidth = LAMINA_FFT_BYTES / sizeof(double);

struct Numbers {
  Vector re, im;
  static Numbers load(const double* from, int64_t imaginary) {
    Numbers v;
    std::memcpy(&v.re, from, sizeof v.re);
    std::memcpy(&v.im, from + imaginary, sizeof v.im);
    return v;
  }
  void store(double* to, int64_t imaginary) const {
    std::memcpy(to, &re, sizeof re);
    std::memcpy(to + imaginary, &im, sizeof im);
  }
};

Numbers operator+(Numbers a, Numbers b) { return {a.re + b.re, a.im + b.im}; }
Numbers operator-(Numbers a, Numbers b) { return {a.re - b.re, a.im - b.im}; }
Numbers operator*(double a, Numbers b) { return {a * b.re, a * b.im}; }
Numbers operator*(std::complex<double> a, Numbers b) {
  return {b.re * a.real() - b.im * a.imag(), b.re * a.imag() + b.im * a.real()};
}
Numbers turned(Numbers a) { return {a.im, -a.re}; }  // -i a

// u = the transform of length kRadix of t.
template <int kRadix>
void butterfly(const Numbers* t, Numbers* u) {
  if constexpr (kRadix == 2) {
    u[0] = t[0] + t[1];
    u[1] = t[0] - t[1];
  } else if constexpr (kRadix == 3) {
    constexpr double kSine = 0.86602540378443864676;
    const Numbers sum = t[1] + t[2], a = t[0] - 0.5 * sum, b = turned(kSine * (t[1] - t[2]));
    u[0] = t[0] + sum;
    u[1] = a + b;
    u[2] = a - b;
  } else if constexpr (kRadix == 4) {
    const Numbers a = t[0] + t[2], b = t[0] - t[2], c = t[1] + t[3], d = turned(t[1] - t[3]);
    u[0] = a + c;
    u[1] = b + d;
    u[2] = a - c;
    u[3] = b - d;
  } else {
    constexpr double kCos1 = 0.30901699437494742410, kCos2 = -0.80901699437494742410,
                     kSin1 = 0.95105651629515357212, kSin2 = 0.58778525229247312917;
    const Numbers a = t[1] + t[4], b = t[2] + t[3], c = t[1] - t[4], d = t[2] - t[3];
    const Numbers x = t[0] + kCos1 * a + kCos2 * b, y = t[0] + kCos2 * a + kCos1 * b;
    const Numbers v = turned(kSin1 * c + kSin2 * d), w = turned(kSin2 * c - kSin1 * d);
    u[0] = t[0] + a + b;
    u[1] = x + v;
    u[2] = y + w;
    u[3] = y - w;
    u[4] = x - v;
  }
}

template <int kRadix>
void run_radix(const FftPass& p) {
  const int64_t imaginary = p.n * kFftLanes, beside = p.done * kFftLanes, apart = p.left * beside;
  for (int64_t j = 0; j < p.left; ++j) {
    std::complex<double> turns[kRadix];
    for (int64_t r = 1; r < kRadix; ++r) turns[r] = p.roots[j * r * p.done];
    const double* in = p.x + j * beside;
    double* out = p.y + kRadix * j * beside;
    for (int64_t k = 0; k < beside; k += kWidth) {
      Numbers t[kRadix], u[kRadix];
      for (int q = 0; q < kRadix; ++q) t[q] = Numbers::load(in + q * apart + k, imaginary);
      butterfly<kRadix>(t, u);
      u[0].store(out + k, imaginary);
      for (int r = 1; r < kRadix; ++r) (turns[r] * u[r]).store(out + r * beside + k, imaginary);
    }
  }
}

void run_any(const FftPass& p) {
  const int64_t imaginary = p.n * kFftLanes, beside = p.done * kFftLanes, apart = p.left * beside;
  const int64_t radix = p.radix, turn = p.n / radix;
  for (int64_t j = 0; j < p.left; ++j)
    for (int64_t k = 0; k < beside; k += kWidth) {
      Numbers t[kLargestRadix];
      for (int64_t q = 0; q < radix; ++q)
        t[q] = Numbers::load(p.x + j * beside + q * apart + k, imaginary);
      for (int64_t r = 0; r < radix; ++r) {
        Numbers sum = t[0];
        for (int64_t q = 1; q < radix; ++q) sum = sum + p.roots[q * r % radix * turn] * t[q];
        (p.roots[j * r * p.done] * sum).store(p.y + (radix * j + r) * beside + k, imaginary);
      }
    }
}

}  // namespace

void run(const FftPass& pass) {
  switch (pass.radix) {
    case 2:
      return run_radix<2>(pass);
    case 3:
      return run_radix<3>(pass);
    case 4:
      return run_radix<4>(pass);
    case 5:
      return run_radix<5>(pass);
    default:
      return run_any(pass);
  }
}

}  // namespace lamina::cpu::LAMINA_FFT_LEVEL

// Normal numbers by Box-Muller. Outputs of at least 16 adjacent elements are made in blocks of 16:
// eight radii from the first half, eight angles from the second. Except for float64 the logarithm,
// sine and cosine are the single-precision polynomials of Cephes, evaluated as the peer's vector
// code does.
#include <cmath>
#include <cstring>
#include <numbers>

#include "lamina/core/float_types.h"
#include "lamina/cpu/random.h"
#include "lamina/cpu/random_fill.h"

#if defined(__x86_64__)
#define LAMINA_WITH_FMA __attribute__((target("avx2,fma")))
#endif

namespace lamina::cpu {
namespace {

#define LAMINA_INLINE [[gnu::always_inline]] inline

LAMINA_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LAMINA_INLINE uint32_t bits_of(float v) {
  uint32_t b;
  std::memcpy(&b, &v, 4);
  return b;
}
LAMINA_INLINE float float_of(uint32_t b) {
  float v;
  std::memcpy(&v, &b, 4);
  return v;
}

// Natural logarithm of x in (0, 1].
LAMINA_INLINE float log_polynomial(float x) {
  x = x < 1.17549435e-38f ? 1.17549435e-38f : x;
  const uint32_t bits = bits_of(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 0x7f) + 1.0f;
  x = float_of((bits & ~0x7f800000u) | 0x3f000000u);
  const bool low = x < 0.707106781186547524f;
  const float kept = low ? x : 0.0f;
  x = x - 1.0f;
  e = low ? e - 1.0f : e;
  x = x + kept;
  const float z = x * x;
  float y = 7.0376836292e-2f;
  y = fused(y, x, -1.1514610310e-1f);
  y = fused(y, x, 1.1676998740e-1f);
  y = fused(y, x, -1.2420140846e-1f);
  y = fused(y, x, 1.4249322787e-1f);
  y = fused(y, x, -1.6668057665e-1f);
  y = fused(y, x, 2.0000714765e-1f);
  y = fused(y, x, -2.4999993993e-1f);
  y = fused(y, x, 3.3333331174e-1f);
  y = y * x;
  y = fused(y, z, e * -2.12194440e-4f);
  y = fused(-z, 0.5f, y);
  x = x + y;
  return fused(e, 0.693359375f, x);
}

struct SineCosine {
  float sine, cosine;
};
// For x in [0, 2 pi).
LAMINA_INLINE SineCosine sincos_polynomial(float x) {
  const auto octant = static_cast<uint32_t>(static_cast<int32_t>(x * 1.27323954473516f));
  const uint32_t j = (octant + 1) & ~1u;
  const float y = static_cast<float>(static_cast<int32_t>(j));
  const uint32_t sine_sign = (j & 4u) << 29;
  const uint32_t cosine_sign = (~(j - 2u) & 4u) << 29;
  const bool plain = (j & 2u) == 0;
  x = fused(y, -0.78515625f, x);
  x = fused(y, -2.4187564849853515625e-4f, x);
  x = fused(y, -3.77489497744594108e-8f, x);
  const float z = x * x;
  float c = 2.443315711809948e-5f;
  c = fused(c, z, -1.388731625493765e-3f);
  c = fused(c, z, 4.166664568298827e-2f);
  c = c * z;
  c = fused(c, z, -(z * 0.5f));
  c = c + 1.0f;
  float s = -1.9515295891e-4f;
  s = fused(s, z, 8.3321608736e-3f);
  s = fused(s, z, -1.6666654611e-1f);
  s = s * z;
  s = fused(s, x, x);
  const float sine = plain ? s : c, cosine = plain ? c : s;
  return {float_of(bits_of(sine) ^ sine_sign), float_of(bits_of(cosine) ^ cosine_sign)};
}

LAMINA_INLINE void transform_16(float* data, float mean, float std) {
  for (int i = 0; i < 8; ++i) {
    const float radius = std::sqrt(-2.0f * log_polynomial(1.0f - data[i]));
    const SineCosine angle = sincos_polynomial(2.0f * std::numbers::pi_v<float> * data[i + 8]);
    data[i] = fused(radius * angle.cosine, std, mean);
    data[i + 8] = fused(radius * angle.sine, std, mean);
  }
}

using Transform = void (*)(float* data, int64_t blocks, float mean, float std);
void transform_plain(float* data, int64_t blocks, float mean, float std) {
  for (int64_t b = 0; b < blocks; ++b) transform_16(data + 16 * b, mean, std);
}
#if defined(__x86_64__)
LAMINA_WITH_FMA void transform_fma(float* data, int64_t blocks, float mean, float std) {
  for (int64_t b = 0; b < blocks; ++b) transform_16(data + 16 * b, mean, std);
}
#endif
Transform pick_transform() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) return transform_fma;
#endif
  return transform_plain;
}

Transform transform() {
  static const Transform chosen = pick_transform();
  return chosen;
}

// The plain formula in double; `data` holds uniforms.
void transform_doubles(double* data, double mean, double std) {
  for (int i = 0; i < 8; ++i) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - data[i]));
    const double angle = 2.0 * std::numbers::pi * data[i + 8];
    data[i] = __builtin_fma(radius * std::cos(angle), std, mean);
    data[i + 8] = __builtin_fma(radius * std::sin(angle), std, mean);
  }
}

// n >= 16 adjacent elements. The last 16 are drawn anew where n is no multiple of 16.
void fill_floats(float* data, int64_t n, float mean, float std, Mt19937Generator& g) {
  for (int64_t i = 0; i < n; ++i) data[i] = uniform_float(g);
  transform()(data, n / 16, mean, std);
  if (n % 16 != 0) {
    float* tail = data + n - 16;
    for (int i = 0; i < 16; ++i) tail[i] = uniform_float(g);
    transform()(tail, 1, mean, std);
  }
}

void fill_doubles(double* data, int64_t n, double mean, double std, Mt19937Generator& g) {
  for (int64_t i = 0; i < n; ++i) data[i] = uniform_double(g);
  for (int64_t i = 0; i + 16 <= n; i += 16) transform_doubles(data + i, mean, std);
  if (n % 16 != 0) {
    double* tail = data + n - 16;
    for (int i = 0; i < 16; ++i) tail[i] = uniform_double(g);
    transform_doubles(tail, mean, std);
  }
}

// float16 and bfloat16 are drawn block by block, so the tail's numbers follow those of the last
// whole block.
template <class T>
void fill_small_floats(T* data, int64_t n, float mean, float std, Mt19937Generator& g) {
  float block[16];
  const auto make = [&](T* out) {
    for (float& v : block) v = uniform_float(g);
    transform()(block, 1, mean, std);
    for (int i = 0; i < 16; ++i) out[i] = T(block[i]);
  };
  for (int64_t i = 0; i + 16 <= n; i += 16) make(data + i);
  if (n % 16 != 0) make(data + n - 16);
}

double one_normal(Mt19937Generator& g) {
  if (g.next_normal) {
    const double v = *g.next_normal;
    g.next_normal.reset();
    return v;
  }
  const double u1 = uniform_double(g), u2 = uniform_double(g);
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), angle = 2.0 * std::numbers::pi * u1;
  g.next_normal = radius * std::sin(angle);
  return radius * std::cos(angle);
}

}  // namespace

void normal(const RandomOutput& out, double mean, double std, Mt19937Generator& g) {
  LAMINA_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  if (is_complex(out.dtype))
    return as_real(out, [&](const RandomOutput& r) { normal(r, mean, std / std::sqrt(2.0), g); });
  int64_t n = 1;
  for (const int64_t size : out.sizes) n *= size;
  const bool in_blocks = n >= 16 && is_contiguous(out);
  std::lock_guard lock(g.mutex());
  switch (out.dtype) {
    case ScalarType::Float32:
      if (in_blocks)
        return fill_floats(static_cast<float*>(out.data), n, static_cast<float>(mean),
                           static_cast<float>(std), g);
      return for_each(out, [&](float* v) { *v = static_cast<float>(one_normal(g) * std + mean); });
    case ScalarType::Float64:
      if (in_blocks) return fill_doubles(static_cast<double*>(out.data), n, mean, std, g);
      return for_each(out, [&](double* v) { *v = __builtin_fma(one_normal(g), std, mean); });
    case ScalarType::Float16:
      if (in_blocks)
        return fill_small_floats(static_cast<Half*>(out.data), n, static_cast<float>(mean),
                                 static_cast<float>(std), g);
      return for_each(out,
                      [&](Half* v) { *v = Half(static_cast<float>(one_normal(g) * std + mean)); });
    case ScalarType::BFloat16:
      if (in_blocks)
        return fill_small_floats(static_cast<BFloat16*>(out.data), n, static_cast<float>(mean),
                                 static_cast<float>(std), g);
      return for_each(
          out, [&](BFloat16* v) { *v = BFloat16(static_cast<float>(one_normal(g) * std + mean)); });
    default:
      raise(ErrorKind::NotImplemented, str("normal_: not implemented for ", name(out.dtype)));
  }
}

void distribute(const RandomOutput& out, Distribution kind, double a, double b,
                Mt19937Generator& g) {
  LAMINA_INTERNAL_CHECK(out.dtype == ScalarType::Float64);
  std::lock_guard lock(g.mutex());
  for_each(out, [&](double* v) {
    switch (kind) {
      case Distribution::Cauchy:
        *v = a + b * std::tan(std::numbers::pi * (uniform_double(g) - 0.5));
        break;
      case Distribution::Geometric:
        *v = std::ceil(std::log(uniform_double(g)) / std::log1p(-a));
        break;
      case Distribution::LogNormal:
        *v = std::exp(one_normal(g) * b + a);
    }
  });
}

}  // namespace lamina::cpu

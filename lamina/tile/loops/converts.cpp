// Conversions between element types over adjacent elements.
#include "lamina/core/float_types.h"
#include "lamina/tile/loops/elementwise.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class D, class S>
[[gnu::always_inline]] inline D convert_one(S v) {
  if constexpr (is_cx<S> && is_cx<D>)
    return {static_cast<decltype(D::re)>(v.re), static_cast<decltype(D::re)>(v.im)};
  else if constexpr (is_cx<S> && std::is_same_v<D, bool>)
    return (v.re != 0) | (v.im != 0);
  else if constexpr (is_cx<S>)
    return convert_one<D>(v.re);
  else if constexpr (is_cx<D>)
    return {convert_one<decltype(D::re)>(v), 0};
  else
    return convert_to<D>(v);
}

template <class D, class S>
void convert_loop(void* out, const void* in, int64_t n) {
  auto* o = static_cast<Cell<D>*>(out);
  auto* x = static_cast<const Cell<S>*>(in);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = convert_one<D>(load<S>(x[i]));
}

// Types that exist only in memory: to and from float.
template <class Bits, float (*to_float)(Bits)>
void widen_loop(void* out, const void* in, int64_t n) {
  auto* o = static_cast<float*>(out);
  auto* x = static_cast<const Bits*>(in);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = to_float(x[i]);
}
template <class Bits, Bits (*from_float)(float)>
void narrow_loop(void* out, const void* in, int64_t n) {
  auto* o = static_cast<Bits*>(out);
  auto* x = static_cast<const float*>(in);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = from_float(x[i]);
}

[[gnu::always_inline]] inline float widen_half(uint16_t b) { return half_bits_to_float(b); }
[[gnu::always_inline]] inline float widen_bfloat16(uint16_t b) { return bfloat16_bits_to_float(b); }
[[gnu::always_inline]] inline float widen_e5m2(uint8_t b) { return e5m2_bits_to_float(b); }
[[gnu::always_inline]] inline float widen_e4m3fn(uint8_t b) { return e4m3fn_bits_to_float(b); }
[[gnu::always_inline]] inline uint16_t narrow_half(float v) { return float_to_half_bits(v); }
[[gnu::always_inline]] inline uint16_t narrow_bfloat16(float v) {
  return float_to_bfloat16_bits(v);
}
[[gnu::always_inline]] inline uint8_t narrow_e5m2(float v) { return float_to_e5m2_bits(v); }
[[gnu::always_inline]] inline uint8_t narrow_e4m3fn(float v) { return float_to_e4m3fn_bits(v); }

#if defined(__F16C__) && defined(__AVX2__)
// The hardware's conversions give the bits of half_bits_to_float and float_to_half_bits, NaNs
// included.
void widen_half_loop(void* out, const void* in, int64_t n) {
  auto* o = static_cast<float*>(out);
  auto* x = static_cast<const uint16_t*>(in);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(o + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  for (; i < n; ++i) o[i] = widen_half(x[i]);
}
void narrow_half_loop(void* out, const void* in, int64_t n) {
  auto* o = static_cast<uint16_t*>(out);
  auto* x = static_cast<const float*>(in);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) o[i] = narrow_half(x[i]);
}
#else
constexpr auto widen_half_loop = widen_loop<uint16_t, widen_half>;
constexpr auto narrow_half_loop = narrow_loop<uint16_t, narrow_half>;
#endif

template <class D>
void fill_to(Level& l) {
  auto& row = l.convert[slot_of<D>];
  row[slot_of<bool>] = convert_loop<D, bool>;
  row[slot_of<uint8_t>] = convert_loop<D, uint8_t>;
  row[slot_of<uint16_t>] = convert_loop<D, uint16_t>;
  row[slot_of<uint32_t>] = convert_loop<D, uint32_t>;
  row[slot_of<uint64_t>] = convert_loop<D, uint64_t>;
  row[slot_of<int8_t>] = convert_loop<D, int8_t>;
  row[slot_of<int16_t>] = convert_loop<D, int16_t>;
  row[slot_of<int32_t>] = convert_loop<D, int32_t>;
  row[slot_of<int64_t>] = convert_loop<D, int64_t>;
  row[slot_of<float>] = convert_loop<D, float>;
  row[slot_of<double>] = convert_loop<D, double>;
  row[slot_of<Cx<float>>] = convert_loop<D, Cx<float>>;
  row[slot_of<Cx<double>>] = convert_loop<D, Cx<double>>;
}

}  // namespace

void fill_converts(Level& l) {
  fill_to<bool>(l);
  fill_to<uint8_t>(l);
  fill_to<uint16_t>(l);
  fill_to<uint32_t>(l);
  fill_to<uint64_t>(l);
  fill_to<int8_t>(l);
  fill_to<int16_t>(l);
  fill_to<int32_t>(l);
  fill_to<int64_t>(l);
  fill_to<float>(l);
  fill_to<double>(l);
  fill_to<Cx<float>>(l);
  fill_to<Cx<double>>(l);
  auto& to_float = l.convert[kFloatSlot];
  to_float[13] = widen_half_loop;
  to_float[14] = widen_loop<uint16_t, widen_bfloat16>;
  to_float[15] = widen_loop<uint8_t, widen_e5m2>;
  to_float[16] = widen_loop<uint8_t, widen_e4m3fn>;
  l.convert[13][kFloatSlot] = narrow_half_loop;
  l.convert[14][kFloatSlot] = narrow_loop<uint16_t, narrow_bfloat16>;
  l.convert[15][kFloatSlot] = narrow_loop<uint8_t, narrow_e5m2>;
  l.convert[16][kFloatSlot] = narrow_loop<uint8_t, narrow_e4m3fn>;
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL

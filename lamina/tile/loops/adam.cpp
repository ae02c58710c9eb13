// One step of Adam over adjacent values.
#include "lamina/tile/adam.h"

#include "lamina/tile/loops/elementwise.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

[[gnu::always_inline]] inline float root(float a) { return __builtin_sqrtf(a); }
[[gnu::always_inline]] inline double root(double a) { return __builtin_sqrt(a); }

// Each operation rounds by itself, in the order of the plain operators.
template <class T, bool Shrink, bool Penalty, bool Negate, bool FromEnd>
void run(T* __restrict p, const T* __restrict g, T* __restrict m, T* __restrict v,
         const AdamStep& s, int64_t n) {
  const T decay = T(s.decay), weight1 = T(s.weight1), keep2 = T(s.keep2), weight2 = T(s.weight2),
          correction2 = T(s.correction2), epsilon = T(s.epsilon), rate = T(s.rate);
  const T rest1 = T(1) - weight1;
  for (int64_t i = 0; i < n; ++i) {
    T param = p[i], grad = g[i];
    if constexpr (Negate) grad = -grad;
    if constexpr (Shrink) param = param * decay;
    if constexpr (Penalty) grad = grad + decay * param;
    const T difference = grad - m[i];
    const T mean = FromEnd ? grad - difference * rest1 : m[i] + weight1 * difference;
    const T square = v[i] * keep2 + weight2 * grad * grad;
    m[i] = mean;
    v[i] = square;
    const T denominator = root(square) / correction2 + epsilon;
    p[i] = param + rate * mean / denominator;
  }
}

template <class T>
void adam(void* p, const void* g, void* m, void* v, const AdamStep& s, int64_t n) {
  const auto call = [&]<bool Shrink, bool Penalty, bool Negate>() {
    const T w = T(s.weight1);
    const bool from_end = !((w < T(0) ? -w : w) < T(0.5));
    (from_end
         ? run<T, Shrink, Penalty, Negate, true>
         : run<T, Shrink, Penalty, Negate, false>)(static_cast<T*>(p), static_cast<const T*>(g),
                                                   static_cast<T*>(m), static_cast<T*>(v), s, n);
  };
  if (s.maximize)
    s.shrink    ? call.template operator()<true, false, true>()
    : s.penalty ? call.template operator()<false, true, true>()
                : call.template operator()<false, false, true>();
  else
    s.shrink    ? call.template operator()<true, false, false>()
    : s.penalty ? call.template operator()<false, true, false>()
                : call.template operator()<false, false, false>();
}

}  // namespace

void fill_adam(Level& l) {
  l.adam[slot_of<float>] = adam<float>;
  l.adam[slot_of<double>] = adam<double>;
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL

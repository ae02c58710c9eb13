// Arithmetic of float and double that needs no function of libm.
#include "lamina/tile/loops/elementwise.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

#define UNARY(Name, expression)                     \
  struct Name {                                     \
    template <class T>                              \
    [[gnu::always_inline]] static inline T f(T a) { \
      expression                                    \
    }                                               \
  };
#define BINARY(Name, expression)                         \
  struct Name {                                          \
    template <class T>                                   \
    [[gnu::always_inline]] static inline T f(T a, T b) { \
      expression                                         \
    }                                                    \
  };
#define BY_WIDTH(name)                                                                     \
  [[gnu::always_inline]] inline float m_##name(float a) { return __builtin_##name##f(a); } \
  [[gnu::always_inline]] inline double m_##name(double a) { return __builtin_##name(a); }
BY_WIDTH(fabs)
BY_WIDTH(sqrt)
BY_WIDTH(floor)
BY_WIDTH(ceil)
BY_WIDTH(trunc)
BY_WIDTH(rint)
[[gnu::always_inline]] inline float m_copysign(float a, float b) {
  return __builtin_copysignf(a, b);
}
[[gnu::always_inline]] inline double m_copysign(double a, double b) {
  return __builtin_copysign(a, b);
}
[[gnu::always_inline]] inline float m_fmod(float a, float b) { return __builtin_fmodf(a, b); }
[[gnu::always_inline]] inline double m_fmod(double a, double b) { return __builtin_fmod(a, b); }

UNARY(Copy, return a;)
UNARY(Neg, return -a;)
UNARY(Abs, return m_fabs(a);)
UNARY(Sign, return T((a > T(0)) - (a < T(0)));)
UNARY(Reciprocal, return T(1) / a;)
UNARY(Sqrt, return m_sqrt(a);)
UNARY(Rsqrt, return T(1) / m_sqrt(a);)
UNARY(Square, return a * a;)
UNARY(Relu, return a < T(0) ? T(0) : a;)
UNARY(Floor, return m_floor(a);)
UNARY(Ceil, return m_ceil(a);)
UNARY(Trunc, return m_trunc(a);)
UNARY(Round, return m_rint(a);)
UNARY(Frac, return a - m_trunc(a);)
UNARY(Imag, (void)a; return T(0);)
UNARY(Angle, return is_nan(a) ? a : a < T(0) ? T(3.14159265358979323846) : T(0);)

BINARY(Add, return a + b;)
BINARY(Sub, return a - b;)
BINARY(Mul, return a * b;)
BINARY(MulZero, return a == T(0) ? a : a * b;)
BINARY(Div, return a / b;)
BINARY(DivTrunc, return m_trunc(a / b);)
BINARY(Max, const T larger = a < b ? b : a; return is_nan(b) ? b : is_nan(a) ? a : larger;)
BINARY(Min, const T smaller = b < a ? b : a; return is_nan(b) ? b : is_nan(a) ? a : smaller;)
BINARY(Fmax, const T larger = a < b ? b : a; return is_nan(a) ? b : larger;)
BINARY(Fmin, const T smaller = b < a ? b : a; return is_nan(a) ? b : smaller;)
BINARY(Copysign, return m_copysign(a, b);)
BINARY(Heaviside, return a == T(0) ? b : T(a > T(0));)
BINARY(Fmod, return m_fmod(a, b);)
BINARY(Remainder, const T r = m_fmod(a, b);
       return r != T(0) && (b < T(0)) != (r < T(0)) ? r + b : r;)
// Floor of the exact quotient: a / b may round up to an integer that the exact one stays below.
BINARY(DivFloor, if (b == T(0)) return a / b; const T r = m_fmod(a, b); T q = (a - r) / b;
       if (r != T(0) && (b < T(0)) != (r < T(0))) q -= T(1);
       if (q == T(0)) return m_copysign(T(0), a / b); T down = m_floor(q);
       if (q - down > T(0.5)) down += T(1); return down;)

struct Where {
  template <class T>
  [[gnu::always_inline]] static inline T f(bool c, T a, T b) {
    return c ? a : b;
  }
};
struct Madd {
  template <class T>
  [[gnu::always_inline]] static inline T f(T a, T b, T c) {
    return a + b * c;
  }
};
// Exact at both ends.
struct Lerp {
  template <class T>
  [[gnu::always_inline]] static inline T f(T a, T b, T w) {
    const T d = b - a;
    const T from_start = a + w * d;
    const T from_end = b - d * (T(1) - w);
    return m_fabs(w) < T(0.5) ? from_start : from_end;
  }
};
struct Clamp {
  template <class T>
  [[gnu::always_inline]] static inline T f(T x, T lo, T hi) {
    return Min::f(Max::f(x, lo), hi);
  }
};

template <class T>
void fill(Level& l) {
  constexpr int s = slot_of<T>;
  const auto unary = [&]<class F>(Op op, F) { l.put(op, s, loop1<F, T>); };
  const auto binary = [&]<class F>(Op op, F) { l.put(op, s, loop2<F, T, T>); };
  for (Op op : {Op::copy, Op::real, Op::conj, Op::from_real}) unary(op, Copy{});
  unary(Op::neg, Neg{});
  unary(Op::abs, Abs{});
  unary(Op::sign, Sign{});
  unary(Op::sgn, Sign{});
  unary(Op::reciprocal, Reciprocal{});
  unary(Op::sqrt, Sqrt{});
  unary(Op::rsqrt, Rsqrt{});
  unary(Op::square, Square{});
  unary(Op::relu, Relu{});
  unary(Op::floor, Floor{});
  unary(Op::ceil, Ceil{});
  unary(Op::trunc, Trunc{});
  unary(Op::round, Round{});
  unary(Op::frac, Frac{});
  unary(Op::imag, Imag{});
  unary(Op::angle, Angle{});
  binary(Op::add, Add{});
  binary(Op::sub, Sub{});
  binary(Op::mul, Mul{});
  binary(Op::mul_zero, MulZero{});
  binary(Op::div, Div{});
  binary(Op::div_floor, DivFloor{});
  binary(Op::div_trunc, DivTrunc{});
  binary(Op::remainder, Remainder{});
  binary(Op::fmod, Fmod{});
  binary(Op::maximum, Max{});
  binary(Op::minimum, Min{});
  binary(Op::fmax, Fmax{});
  binary(Op::fmin, Fmin{});
  binary(Op::copysign, Copysign{});
  binary(Op::heaviside, Heaviside{});
  l.put(Op::where, s, loop3<Where, bool, T, T>);
  l.put(Op::madd, s, loop3<Madd, T, T, T>);
  l.put(Op::lerp, s, loop3<Lerp, T, T, T>);
  l.put(Op::clamp, s, loop3<Clamp, T, T, T>);
}

}  // namespace

void fill_floats(Level& l) {
  fill<float>(l);
  fill<double>(l);
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL

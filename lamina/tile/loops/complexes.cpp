// Complex arithmetic that vectorizes. Division, roots and functions are in complex_functions.cpp.
#include "lamina/tile/loops/elementwise.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

#define LAMINA_INLINE [[gnu::always_inline]] static inline

template <class R>
[[gnu::always_inline]] inline bool nonzero(Cx<R> a) {
  return (a.re != R(0)) | (a.im != R(0));
}
template <class R>
[[gnu::always_inline]] inline R size_of_real(R a) {
  if constexpr (sizeof(R) == 4)
    return __builtin_fabsf(a);
  else
    return __builtin_fabs(a);
}

struct Copy {
  template <class C>
  LAMINA_INLINE C f(C a) {
    return a;
  }
};
struct Neg {
  template <class C>
  LAMINA_INLINE C f(C a) {
    return {-a.re, -a.im};
  }
};
struct Conj {
  template <class C>
  LAMINA_INLINE C f(C a) {
    return {a.re, -a.im};
  }
};
struct Square {
  template <class C>
  LAMINA_INLINE C f(C a) {
    return {a.re * a.re - a.im * a.im, a.re * a.im + a.im * a.re};
  }
};
struct Real {
  template <class R>
  LAMINA_INLINE R f(Cx<R> a) {
    return a.re;
  }
};
struct Imag {
  template <class R>
  LAMINA_INLINE R f(Cx<R> a) {
    return a.im;
  }
};
struct LogicalNot {
  template <class C>
  LAMINA_INLINE bool f(C a) {
    return !nonzero(a);
  }
};
struct ToBool {
  template <class C>
  LAMINA_INLINE bool f(C a) {
    return nonzero(a);
  }
};
struct IsNan {
  template <class C>
  LAMINA_INLINE bool f(C a) {
    return is_nan(a.re) | is_nan(a.im);
  }
};
struct IsInf {
  template <class R>
  LAMINA_INLINE bool f(Cx<R> a) {
    constexpr R kInf = R(__builtin_inf());
    return (size_of_real(a.re) == kInf) | (size_of_real(a.im) == kInf);
  }
};
struct IsFinite {
  template <class R>
  LAMINA_INLINE bool f(Cx<R> a) {
    constexpr R kInf = R(__builtin_inf());
    return (size_of_real(a.re) < kInf) & (size_of_real(a.im) < kInf);
  }
};
template <class R>
struct FromReal {
  LAMINA_INLINE Cx<R> f(R a) { return {a, R(0)}; }
};
template <class R>
struct FromBool {
  LAMINA_INLINE Cx<R> f(bool a) { return {R(a), R(0)}; }
};
struct Join {
  template <class R>
  LAMINA_INLINE Cx<R> f(R re, R im) {
    return {re, im};
  }
};
struct Add {
  template <class C>
  LAMINA_INLINE C f(C a, C b) {
    return {a.re + b.re, a.im + b.im};
  }
};
struct Sub {
  template <class C>
  LAMINA_INLINE C f(C a, C b) {
    return {a.re - b.re, a.im - b.im};
  }
};
struct Mul {
  template <class C>
  LAMINA_INLINE C f(C a, C b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
struct MulZero {
  template <class C>
  LAMINA_INLINE C f(C a, C b) {
    return nonzero(a) ? Mul::f(a, b) : a;
  }
};
struct Eq {
  template <class C>
  LAMINA_INLINE bool f(C a, C b) {
    return (a.re == b.re) & (a.im == b.im);
  }
};
struct Ne {
  template <class C>
  LAMINA_INLINE bool f(C a, C b) {
    return (a.re != b.re) | (a.im != b.im);
  }
};
struct LogicalAnd {
  template <class C>
  LAMINA_INLINE bool f(C a, C b) {
    return nonzero(a) & nonzero(b);
  }
};
struct LogicalOr {
  template <class C>
  LAMINA_INLINE bool f(C a, C b) {
    return nonzero(a) | nonzero(b);
  }
};
struct LogicalXor {
  template <class C>
  LAMINA_INLINE bool f(C a, C b) {
    return nonzero(a) != nonzero(b);
  }
};
struct Where {
  template <class C>
  LAMINA_INLINE C f(bool c, C a, C b) {
    return {c ? a.re : b.re, c ? a.im : b.im};
  }
};
struct Madd {
  template <class C>
  LAMINA_INLINE C f(C a, C b, C c) {
    return Add::f(a, Mul::f(b, c));
  }
};
struct Lerp {
  template <class R>
  LAMINA_INLINE Cx<R> f(Cx<R> a, Cx<R> b, Cx<R> w) {
    const Cx<R> d = Sub::f(b, a);
    const Cx<R> from_start = Add::f(a, Mul::f(w, d));
    const Cx<R> from_end = Sub::f(b, Mul::f(d, Cx<R>{R(1) - w.re, -w.im}));
    return Where::f(w.re * w.re + w.im * w.im < R(0.25), from_start, from_end);
  }
};

template <class R>
void fill(Level& l) {
  using C = Cx<R>;
  constexpr int s = slot_of<C>;
  l.put(Op::copy, s, loop1<Copy, C>);
  l.put(Op::neg, s, loop1<Neg, C>);
  l.put(Op::conj, s, loop1<Conj, C>);
  l.put(Op::square, s, loop1<Square, C>);
  l.put(Op::real, s, loop1<Real, C>);
  l.put(Op::imag, s, loop1<Imag, C>);
  l.put(Op::logical_not, s, loop1<LogicalNot, C>);
  l.put(Op::to_bool, s, loop1<ToBool, C>);
  l.put(Op::isnan, s, loop1<IsNan, C>);
  l.put(Op::isinf, s, loop1<IsInf, C>);
  l.put(Op::isfinite, s, loop1<IsFinite, C>);
  l.put(Op::from_real, s, loop1<FromReal<R>, R>);
  l.put(Op::from_bool, s, loop1<FromBool<R>, bool>);
  l.put(Op::complex, s, loop2<Join, R, R>);
  l.put(Op::add, s, loop2<Add, C, C>);
  l.put(Op::sub, s, loop2<Sub, C, C>);
  l.put(Op::mul, s, loop2<Mul, C, C>);
  l.put(Op::mul_zero, s, loop2<MulZero, C, C>);
  l.put(Op::eq, s, loop2<Eq, C, C>);
  l.put(Op::ne, s, loop2<Ne, C, C>);
  l.put(Op::logical_and, s, loop2<LogicalAnd, C, C>);
  l.put(Op::logical_or, s, loop2<LogicalOr, C, C>);
  l.put(Op::logical_xor, s, loop2<LogicalXor, C, C>);
  l.put(Op::where, s, loop3<Where, bool, C, C>);
  l.put(Op::madd, s, loop3<Madd, C, C, C>);
  l.put(Op::lerp, s, loop3<Lerp, C, C, C>);
}

}  // namespace

void fill_complex(Level& l) {
  fill<float>(l);
  fill<double>(l);
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL

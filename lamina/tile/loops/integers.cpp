// Arithmetic of bool and the integers.
#include "lamina/tile/loops/elementwise.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

template <class T>
inline constexpr bool is_bool = std::is_same_v<T, bool>;

#define UNARY(Name, expression)                     \
  struct Name {                                     \
    template <class T>                              \
    [[gnu::always_inline]] static inline T f(T a) { \
      using W [[maybe_unused]] = Wide<T>;           \
      expression                                    \
    }                                               \
  };
#define BINARY(Name, expression)                         \
  struct Name {                                          \
    template <class T>                                   \
    [[gnu::always_inline]] static inline T f(T a, T b) { \
      using W [[maybe_unused]] = Wide<T>;                \
      expression                                         \
    }                                                    \
  };

UNARY(Copy, return a;)
UNARY(Neg, return static_cast<T>(W(0) - W(a));)
UNARY(Abs, if constexpr (std::is_signed_v<T>) return a < 0 ? static_cast<T>(W(0) - W(a)) : a;
      else return a;)
UNARY(Sign, return static_cast<T>((a > T(0)) - (a < T(0)));)
UNARY(Square, return static_cast<T>(W(a) * W(a));)
UNARY(Relu, return a > T(0) ? a : T(0);)
UNARY(Not, if constexpr (is_bool<T>) return !a; else return static_cast<T>(~W(a));)
UNARY(Zero, (void)a; return T(0);)

BINARY(Add, return static_cast<T>(W(a) + W(b));)
BINARY(Sub, return static_cast<T>(W(a) - W(b));)
BINARY(Mul, return static_cast<T>(W(a) * W(b));)
BINARY(Max, return a < b ? b : a;)
BINARY(Min, return b < a ? b : a;)
BINARY(And, return static_cast<T>(a & b);)
BINARY(Or, return static_cast<T>(a | b);)
BINARY(Xor, return static_cast<T>(a ^ b);)
BINARY(Heaviside, return a == T(0) ? b : T(a > T(0));)
BINARY(Shl, constexpr W kBits = sizeof(T) * 8;
       return W(b) < kBits ? static_cast<T>(W(a) << (W(b) & (kBits - 1))) : T(0);)
BINARY(Shr, constexpr W kBits = sizeof(T) * 8; const bool inside = W(b) < kBits;
       if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> (inside ? W(b) : kBits - 1));
       else return inside ? static_cast<T>(W(a) >> (W(b) & (kBits - 1))) : T(0);)
BINARY(DivTrunc,
       if constexpr (std::is_signed_v<T>) if (b == T(-1)) return static_cast<T>(W(0) - W(a));
       return static_cast<T>(a / b);)
BINARY(
    DivFloor, if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return static_cast<T>(W(0) - W(a));
      const T q = static_cast<T>(a / b);
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(q - 1) : q;
    } else return static_cast<T>(a / b);)
BINARY(Fmod, if constexpr (std::is_signed_v<T>) if (b == T(-1)) return T(0);
       return static_cast<T>(a % b);)
BINARY(
    Remainder, if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return T(0);
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    } else return static_cast<T>(a % b);)
BINARY(
    Pow, if constexpr (is_bool<T>) return a || !b; else {
      if constexpr (std::is_signed_v<T>)
        if (b < 0) return a == T(1) ? T(1) : a == T(-1) ? ((b & 1) ? T(-1) : T(1)) : T(0);
      W base = W(a);
      W result = 1;
      for (W e = W(b); e != 0; e >>= 1) {
        if (e & 1) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    })

template <class T>
[[gnu::always_inline]] inline Wide<T> magnitude(T a) {
  using W = Wide<T>;
  if constexpr (std::is_signed_v<T>)
    return a < 0 ? W(0) - W(a) : W(a);
  else
    return W(a);
}
template <class T>
[[gnu::always_inline]] inline Wide<T> gcd_of(T a, T b) {
  Wide<T> x = magnitude(a);
  Wide<T> y = magnitude(b);
  while (y != 0) {
    const Wide<T> r = x % y;
    x = y;
    y = r;
  }
  return x;
}
BINARY(Gcd, return static_cast<T>(gcd_of(a, b));)
BINARY(Lcm, const W g = gcd_of(a, b);
       const T product = static_cast<T>(g == 0 ? W(0) : magnitude(a) / g * magnitude(b));
       return Abs::f(product);)

struct Where {
  template <class T>
  [[gnu::always_inline]] static inline T f(bool c, T a, T b) {
    return c ? a : b;
  }
};
struct Madd {
  template <class T>
  [[gnu::always_inline]] static inline T f(T a, T b, T c) {
    return static_cast<T>(Wide<T>(a) + Wide<T>(b) * Wide<T>(c));
  }
};
struct Clamp {
  template <class T>
  [[gnu::always_inline]] static inline T f(T x, T lo, T hi) {
    const T raised = x < lo ? lo : x;
    return hi < raised ? hi : raised;
  }
};

template <class T>
void fill(Level& l) {
  constexpr int s = slot_of<T>;
  const auto unary = [&]<class F>(Op op, F) { l.put(op, s, loop1<F, T>); };
  const auto binary = [&]<class F>(Op op, F) { l.put(op, s, loop2<F, T, T>); };
  for (Op op :
       {Op::copy, Op::floor, Op::ceil, Op::trunc, Op::round, Op::real, Op::conj, Op::from_real})
    unary(op, Copy{});
  unary(Op::imag, Zero{});
  unary(Op::abs, Abs{});
  unary(Op::sign, Sign{});
  unary(Op::sgn, Sign{});
  unary(Op::square, Square{});
  unary(Op::relu, Relu{});
  unary(Op::bitwise_not, Not{});
  binary(Op::add, Add{});
  binary(Op::sub, Sub{});
  binary(Op::mul, Mul{});
  binary(Op::mul_zero, Mul{});
  for (Op op : {Op::maximum, Op::fmax}) binary(op, Max{});
  for (Op op : {Op::minimum, Op::fmin}) binary(op, Min{});
  binary(Op::bitwise_and, And{});
  binary(Op::bitwise_or, Or{});
  binary(Op::bitwise_xor, Xor{});
  binary(Op::heaviside, Heaviside{});
  binary(Op::pow, Pow{});
  l.put(Op::where, s, loop3<Where, bool, T, T>);
  l.put(Op::madd, s, loop3<Madd, T, T, T>);
  l.put(Op::clamp, s, loop3<Clamp, T, T, T>);
  if constexpr (!is_bool<T>) {
    unary(Op::neg, Neg{});
    binary(Op::shl, Shl{});
    binary(Op::shr, Shr{});
    binary(Op::gcd, Gcd{});
    binary(Op::lcm, Lcm{});
    l.put(Op::div_trunc, s, loop_divide<DivTrunc, T>);
    l.put(Op::div_floor, s, loop_divide<DivFloor, T>);
    l.put(Op::fmod, s, loop_divide<Fmod, T>);
    l.put(Op::remainder, s, loop_divide<Remainder, T>);
  }
}

}  // namespace

void fill_integers(Level& l) {
  fill<bool>(l);
  fill<uint8_t>(l);
  fill<uint16_t>(l);
  fill<uint32_t>(l);
  fill<uint64_t>(l);
  fill<int8_t>(l);
  fill<int16_t>(l);
  fill<int32_t>(l);
  fill<int64_t>(l);
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL

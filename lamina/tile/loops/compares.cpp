// Operations of the real types whose result is a bool.
#include <bit>

#include "lamina/tile/loops/elementwise.h"

namespace lamina::tile::LAMINA_TILE_LEVEL {
namespace {

#define UNARY(Name, expression)                        \
  struct Name {                                        \
    template <class T>                                 \
    [[gnu::always_inline]] static inline bool f(T a) { \
      (void)a;                                         \
      expression                                       \
    }                                                  \
  };
#define BINARY(Name, expression)                            \
  struct Name {                                             \
    template <class T>                                      \
    [[gnu::always_inline]] static inline bool f(T a, T b) { \
      return expression;                                    \
    }                                                       \
  };

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
template <class T>
inline constexpr T kInf = T(__builtin_inf());
template <class T>
[[gnu::always_inline]] inline T magnitude(T a) {
  if constexpr (std::is_same_v<T, float>)
    return __builtin_fabsf(a);
  else
    return __builtin_fabs(a);
}

UNARY(LogicalNot, return a == T(0);)
UNARY(ToBool, return a != T(0);)
UNARY(IsNan, if constexpr (is_float<T>) return is_nan(a); else return false;)
UNARY(IsInf, if constexpr (is_float<T>) return magnitude(a) == kInf<T>; else return false;)
UNARY(IsFinite, if constexpr (is_float<T>) return magnitude(a) < kInf<T>; else return true;)
UNARY(IsPosInf, if constexpr (is_float<T>) return a == kInf<T>; else return false;)
UNARY(IsNegInf, if constexpr (is_float<T>) return a == -kInf<T>; else return false;)
UNARY(Signbit, if constexpr (std::is_same_v<T, float>) return std::bit_cast<int32_t>(a) < 0;
      else if constexpr (is_float<T>) return std::bit_cast<int64_t>(a) < 0; else return a < T(0);)

BINARY(Eq, a == b)
BINARY(Ne, a != b)
BINARY(Lt, a < b)
BINARY(Le, a <= b)
BINARY(Gt, a > b)
BINARY(Ge, a >= b)
BINARY(LogicalAnd, (a != T(0)) & (b != T(0)))
BINARY(LogicalOr, (a != T(0)) | (b != T(0)))
BINARY(LogicalXor, (a != T(0)) != (b != T(0)))

struct FromBool {
  template <class T>
  struct To {
    [[gnu::always_inline]] static inline T f(bool a) { return T(a); }
  };
};
struct NotB {
  [[gnu::always_inline]] static inline bool f(bool a) { return !a; }
};
struct AndB {
  [[gnu::always_inline]] static inline bool f(bool a, bool b) { return a & b; }
};
struct OrB {
  [[gnu::always_inline]] static inline bool f(bool a, bool b) { return a | b; }
};
struct XorB {
  [[gnu::always_inline]] static inline bool f(bool a, bool b) { return a != b; }
};

template <class T>
void fill(Level& l) {
  constexpr int s = slot_of<T>;
  const auto unary = [&]<class F>(Op op, F) { l.put(op, s, loop1<F, T>); };
  const auto binary = [&]<class F>(Op op, F) { l.put(op, s, loop2<F, T, T>); };
  unary(Op::logical_not, LogicalNot{});
  unary(Op::to_bool, ToBool{});
  unary(Op::isnan, IsNan{});
  unary(Op::isinf, IsInf{});
  unary(Op::isfinite, IsFinite{});
  unary(Op::isposinf, IsPosInf{});
  unary(Op::isneginf, IsNegInf{});
  unary(Op::signbit, Signbit{});
  binary(Op::eq, Eq{});
  binary(Op::ne, Ne{});
  binary(Op::lt, Lt{});
  binary(Op::le, Le{});
  binary(Op::gt, Gt{});
  binary(Op::ge, Ge{});
  binary(Op::logical_and, LogicalAnd{});
  binary(Op::logical_or, LogicalOr{});
  binary(Op::logical_xor, LogicalXor{});
  l.put(Op::from_bool, s, loop1<FromBool::To<T>, bool>);
}

}  // namespace

void fill_compares(Level& l) {
  fill<bool>(l);
  fill<uint8_t>(l);
  fill<uint16_t>(l);
  fill<uint32_t>(l);
  fill<uint64_t>(l);
  fill<int8_t>(l);
  fill<int16_t>(l);
  fill<int32_t>(l);
  fill<int64_t>(l);
  fill<float>(l);
  fill<double>(l);
  for (int s = 0; s <= slot_of<Cx<double>>; ++s) {
    l.put(Op::not_b, s, loop1<NotB, bool>);
    l.put(Op::and_b, s, loop2<AndB, bool, bool>);
    l.put(Op::or_b, s, loop2<OrB, bool, bool>);
    l.put(Op::xor_b, s, loop2<XorB, bool, bool>);
  }
}

}  // namespace lamina::tile::LAMINA_TILE_LEVEL

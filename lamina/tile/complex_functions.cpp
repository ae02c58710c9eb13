// Complex division, roots and elementary functions: C99's special values, computed in double also
// for complex64, so that no intermediate overflows or underflows.
#include <cmath>
#include <complex>

#include "lamina/tile/level.h"

namespace lamina::tile {
namespace {

using Z = std::complex<double>;

template <class R, class F>
void unary_loop(void* out, const void* a, const void*, const void*, int64_t n) {
  auto* o = static_cast<std::complex<R>*>(out);
  auto* x = static_cast<const std::complex<R>*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = std::complex<R>(F::f(Z(x[i])));
}
template <class R, class F>
void real_loop(void* out, const void* a, const void*, const void*, int64_t n) {
  auto* o = static_cast<R*>(out);
  auto* x = static_cast<const std::complex<R>*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<R>(F::f(Z(x[i])));
}
template <class R, class F>
void binary_loop(void* out, const void* a, const void* b, const void*, int64_t n) {
  auto* o = static_cast<std::complex<R>*>(out);
  auto* x = static_cast<const std::complex<R>*>(a);
  auto* y = static_cast<const std::complex<R>*>(b);
  for (int64_t i = 0; i < n; ++i) o[i] = std::complex<R>(F::f(Z(x[i]), Z(y[i])));
}
template <class R>
void polar_loop(void* out, const void* a, const void* b, const void*, int64_t n) {
  auto* o = static_cast<std::complex<R>*>(out);
  auto* r = static_cast<const R*>(a);
  auto* t = static_cast<const R*>(b);
  for (int64_t i = 0; i < n; ++i)
    o[i] = {static_cast<R>(r[i] * std::cos(double(t[i]))),
            static_cast<R>(r[i] * std::sin(double(t[i])))};
}

#define UNARY(Name, expression)            \
  struct Name {                            \
    static Z f(Z z) { return expression; } \
  };
UNARY(Reciprocal, 1.0 / z)
UNARY(Sqrt, std::sqrt(z))
UNARY(Rsqrt, 1.0 / std::sqrt(z))
UNARY(Exp, std::exp(z))
UNARY(Exp2, std::exp(z * 0.69314718055994530942))
UNARY(Log, std::log(z))
UNARY(Log2, std::log(z) * 1.4426950408889634074)
UNARY(Log10, std::log(z) * 0.43429448190325182765)
UNARY(Sin, std::sin(z))
UNARY(Cos, std::cos(z))
UNARY(Tan, std::tan(z))
UNARY(Asin, std::asin(z))
UNARY(Acos, std::acos(z))
UNARY(Atan, std::atan(z))
UNARY(Sinh, std::sinh(z))
UNARY(Cosh, std::cosh(z))
UNARY(Tanh, std::tanh(z))
UNARY(Asinh, std::asinh(z))
UNARY(Acosh, std::acosh(z))
UNARY(Atanh, std::atanh(z))
UNARY(Sigmoid, 1.0 / (1.0 + std::exp(-z)))
UNARY(Silu, z / (1.0 + std::exp(-z)))
#undef UNARY

// exp(x + iy) - 1 without cancellation where both parts are small.
struct Expm1 {
  static Z f(Z z) {
    const double s = std::sin(z.imag() / 2);
    if (!std::isfinite(z.real()) || !std::isfinite(z.imag())) return std::exp(z) - 1.0;
    return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * s * s,
            std::exp(z.real()) * std::sin(z.imag())};
  }
};
struct Log1p {
  static Z f(Z z) {
    const double x = z.real();
    const double y = z.imag();
    const double size = std::abs(z);
    if (!(size < 0.5)) return std::log(Z(1.0 + x, y));
    return {0.5 * std::log1p(x * (2 + x) + y * y), std::atan2(y, 1 + x)};
  }
};
struct Abs {
  static double f(Z z) { return std::abs(z); }
};
struct Angle {
  static double f(Z z) { return std::arg(z); }
};
struct Sgn {
  static Z f(Z z) {
    const double size = std::abs(z);
    return size == 0 ? Z(0, 0) : Z(z.real() / size, z.imag() / size);
  }
};
struct Div {
  static Z f(Z a, Z b) { return a / b; }
};
struct Pow {
  static Z f(Z a, Z b) {
    if (b == Z(0, 0)) return {1, 0};
    if (a == Z(0, 0) && b.imag() == 0) {
      if (b.real() > 0) return {0, 0};
      return 1.0 / a;
    }
    // Small integer powers by multiplication: exact where the products are.
    if (b.imag() == 0 && std::trunc(b.real()) == b.real() && std::fabs(b.real()) <= 16) {
      Z result(1, 0);
      for (int i = 0; i < int(std::fabs(b.real())); ++i)
        result = Z(result.real() * a.real() - result.imag() * a.imag(),
                   result.real() * a.imag() + result.imag() * a.real());
      return b.real() < 0 ? 1.0 / result : result;
    }
    return std::exp(b * std::log(a));
  }
};

template <class R>
void fill(Level& l, int s) {
  const auto unary = [&]<class F>(Op op, F) { l.put(op, s, unary_loop<R, F>); };
  unary(Op::reciprocal, Reciprocal{});
  unary(Op::sqrt, Sqrt{});
  unary(Op::rsqrt, Rsqrt{});
  unary(Op::exp, Exp{});
  unary(Op::exp2, Exp2{});
  unary(Op::expm1, Expm1{});
  unary(Op::log, Log{});
  unary(Op::log2, Log2{});
  unary(Op::log10, Log10{});
  unary(Op::log1p, Log1p{});
  unary(Op::sin, Sin{});
  unary(Op::cos, Cos{});
  unary(Op::tan, Tan{});
  unary(Op::asin, Asin{});
  unary(Op::acos, Acos{});
  unary(Op::atan, Atan{});
  unary(Op::sinh, Sinh{});
  unary(Op::cosh, Cosh{});
  unary(Op::tanh, Tanh{});
  unary(Op::asinh, Asinh{});
  unary(Op::acosh, Acosh{});
  unary(Op::atanh, Atanh{});
  unary(Op::sigmoid, Sigmoid{});
  unary(Op::silu, Silu{});
  unary(Op::sgn, Sgn{});
  l.put(Op::abs, s, real_loop<R, Abs>);
  l.put(Op::angle, s, real_loop<R, Angle>);
  l.put(Op::div, s, binary_loop<R, Div>);
  l.put(Op::pow, s, binary_loop<R, Pow>);
  l.put(Op::polar, s, polar_loop<R>);
}

}  // namespace

void fill_complex_functions(Level& l) {
  fill<float>(l, memory_slot(ScalarType::Complex64));
  fill<double>(l, memory_slot(ScalarType::Complex128));
}

}  // namespace lamina::tile

// Real functions that are computed one element at a time.
#include <cmath>
#include <limits>

#include "lamina/tile/level.h"
#include "lamina/tile/special.h"

namespace lamina::tile {
namespace {

// Inverse error function: a starting value from the logarithm of 1 - x^2, then Halley's iteration,
// which triples the number of right digits each time; the residual goes through erfc near one,
// where erf has lost its digits.
double erfinv(double x) {
  if (!(std::fabs(x) < 1)) {
    if (std::fabs(x) == 1) return std::copysign(std::numeric_limits<double>::infinity(), x);
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (x == 0) return x;
  const double a = std::fabs(x);
  const double log_term = std::log1p(-a * a);
  const double k = 4.3307467508 + log_term / 2;  // 2 / (pi * 0.147)
  double y = std::sqrt(std::sqrt(k * k - log_term / 0.147) - k);
  for (int i = 0; i < 3; ++i) {
    const double error = a > 0.5 ? (1 - a) - std::erfc(y) : std::erf(y) - a;
    const double step = error / (1.12837916709551257390 * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

// Recurrence up to 10, then the asymptotic series; reflection for negative arguments.
double digamma(double x) {
  constexpr double kPi = 3.14159265358979323846;
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  double result = 0;
  if (x < 0) {
    if (std::trunc(x) == x) return std::numeric_limits<double>::quiet_NaN();
    double fraction = x - std::trunc(x);
    result = -kPi / std::tan(kPi * fraction);
    x = 1 - x;
  }
  while (x < 10) {
    result -= 1 / x;
    x += 1;
  }
  const double r = 1 / (x * x);
  const double series =
      r * (1.0 / 12 - r * (1.0 / 120 -
                           r * (1.0 / 252 -
                                r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760 - r / 12))))));
  return result + std::log(x) - 0.5 / x - series;
}

double lgamma_of(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

template <class T, double (*f)(double)>
void loop(void* out, const void* a, const void*, const void*, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<T>(f(static_cast<double>(x[i])));
}
template <class T>
void nextafter_loop(void* out, const void* a, const void* b, const void*, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  for (int64_t i = 0; i < n; ++i) o[i] = std::nextafter(x[i], y[i]);
}

// The number of the function comes as an operand; a number that is none gives NaN.
template <class T>
void special_loop(void* out, const void* a, const void* which, const void*, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(a);
  auto* w = static_cast<const T*>(which);
  for (int64_t i = 0; i < n; ++i)
    o[i] = static_cast<T>(special(static_cast<Special>(static_cast<int>(w[i])), x[i]));
}
template <class T>
void special2_loop(void* out, const void* a, const void* b, const void* which, int64_t n) {
  auto* o = static_cast<T*>(out);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  auto* w = static_cast<const T*>(which);
  for (int64_t i = 0; i < n; ++i)
    o[i] = static_cast<T>(special2(static_cast<Special2>(static_cast<int>(w[i])), x[i], y[i]));
}

template <class T>
void fill(Level& l, int s) {
  l.put(Op::special, s, special_loop<T>);
  l.put(Op::special2, s, special2_loop<T>);
  l.put(Op::erfinv, s, loop<T, erfinv>);
  l.put(Op::digamma, s, loop<T, digamma>);
  l.put(Op::lgamma, s, loop<T, lgamma_of>);
  l.put(Op::nextafter, s, nextafter_loop<T>);
}

}  // namespace

void fill_scalar_functions(Level& l) {
  fill<float>(l, memory_slot(ScalarType::Float32));
  fill<double>(l, memory_slot(ScalarType::Float64));
}

}  // namespace lamina::tile

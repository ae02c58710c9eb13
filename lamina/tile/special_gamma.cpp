// Hurwitz's zeta function, polygamma, the incomplete gamma functions, orthogonal polynomials.
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "lamina/tile/special.h"

namespace lamina::tile {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
constexpr double kEnough = 1e-17;  // of a sum: further terms change nothing

// Bernoulli numbers B_2j over (2j)!.
constexpr double kBernoulli[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -5.284190138687493e-10,
                                 1.3382536530684679e-11,
                                 -3.3896802963225829e-13,
                                 8.586062056277845e-15,
                                 -2.174868698558062e-16,
                                 5.509002828360230e-18,
                                 -1.395446468581252e-19};

// Euler and Maclaurin: terms up to where the asymptotic series holds, then its integral and
// corrections.
double positive_zeta(double s, double q) {
  if (std::isinf(q)) return 0;
  double sum = 0;
  const double start = std::fmax(10, s < 1000 ? s : 1000);
  while (q < start) {
    const double term = std::pow(q, -s);
    sum += term;
    if (term <= kEnough * sum) return sum;
    q += 1;
  }
  const double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = s * power / q;
  for (int j = 0; j < 12; ++j) {
    const double term = kBernoulli[j] * factor;
    sum += term;
    if (std::fabs(term) <= kEnough * std::fabs(sum)) break;
    factor *= (s + 2 * j + 1) / q * ((s + 2 * j + 2) / q);
  }
  return sum;
}

// log(1 + x) - x without cancellation, x > -1.
double log1p_minus(double x) {
  if (x < -0.4 || x > 0.7) return std::log1p(x) - x;
  const double r = x / (2 + x), y = r * r;
  double sum = 0, power = y;
  for (int k = 3; k < 60; k += 2) {
    const double term = power / k;
    sum += term;
    if (term < kEnough * sum) break;
    power *= y;
  }
  return r * (2 * sum - x);
}

// x^a exp(-x) / Gamma(a + 1).
double gamma_density(double a, double x) {
  if (a < 10) {
    int sign;
    return std::exp(a * std::log(x) - x - ::lgamma_r(a + 1, &sign));
  }
  const double b = 1 / (a * a);
  const double stirling =
      (1.0 / 12 - b * (1.0 / 360 -
                       b * (1.0 / 1260 - b * (1.0 / 1680 - b * (1.0 / 1188 - b * 691 / 360360))))) /
      a;
  return std::exp(a * log1p_minus((x - a) / a) - stirling) / std::sqrt(2 * kPi * a);
}

// Temme's uniform expansion to its second term, for orders so large that further ones vanish.
double uniform_igamma(double a, double x, bool upper) {
  const double mu = (x - a) / a;
  const double half = -log1p_minus(mu);  // eta^2 / 2
  const double eta = std::copysign(std::sqrt(2 * half), mu);
  const double c0 = std::fabs(mu) < 1e-3
                        ? -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta / 864))
                        : 1 / mu - 1 / eta;
  const double rest = std::exp(-a * half) / std::sqrt(2 * kPi * a) * c0;
  const double at = eta * std::sqrt(a / 2);
  return upper ? 0.5 * std::erfc(at) + rest : 0.5 * std::erfc(-at) - rest;
}

}  // namespace

double special_zeta(double s, double q) {
  if (s != s || q != q) return kNan;
  if (s == 1) return kInf;
  if (s < 1) return kNan;
  if (std::isinf(s)) return q > 1 ? 0 : q == 1 ? 1 : q > 0 ? kInf : kNan;
  if (q > 0) return positive_zeta(s, q);
  if (q == std::floor(q)) return std::isinf(q) ? kNan : kInf;
  if (s != std::floor(s)) return kNan;  // powers of negative numbers
  // All integers away from q, less those on its other side.
  const double fraction = q - std::floor(q);
  const double mirror = positive_zeta(s, 1 - fraction) - positive_zeta(s, 1 - q);
  const bool odd = std::fmod(s, 2) == 1;
  return positive_zeta(s, fraction) + (odd ? -mirror : mirror);
}

double special_polygamma(double n, double x) {
  const double sum = special_zeta(n + 1, x);
  int sign;
  const double factorial = n <= 170 ? std::tgamma(n + 1) : kInf;
  const double size =
      n <= 170 || sum == 0
          ? (sum == 0 ? 0 : factorial * sum)
          : std::copysign(std::exp(::lgamma_r(n + 1, &sign) + std::log(std::fabs(sum))), sum);
  return std::fmod(n, 2) == 1 ? size : -size;
}

// A series below the order, a continued fraction (Legendre's, by Lentz's method) above.
double special_igamma(double a, double x, bool upper) {
  if (!(a >= 0 && x >= 0)) return kNan;
  if (a == 0) return x > 0 ? !upper : kNan;
  if (x == 0) return upper;
  if (std::isinf(a)) return std::isinf(x) ? kNan : upper;
  if (std::isinf(x)) return !upper;
  if (a > 1e6 && std::fabs(x - a) < 0.5 * a) return uniform_igamma(a, x, upper);
  const double density = gamma_density(a, x);
  if (x <= 1 || x <= a) {
    double sum = 1, term = 1;
    for (double k = a + 1; term > kEnough * sum; k += 1) {
      term *= x / k;
      sum += term;
    }
    const double lower = density * sum;
    return upper ? 1 - lower : lower;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    c = b + an / c;
    d = 1 / (d == 0 ? 1e-300 : d);
    const double change = c * d;
    h *= change;
    if (std::fabs(change - 1) < 1e-16) break;
  }
  const double higher = density * a * h;
  return upper ? higher : 1 - higher;
}

// By the recurrences of three terms; Chebyshev's of high degree by their trigonometric forms.
double special_polynomial(Special2 family, double x, double degree) {
  if (x != x || degree != degree) return kNan;
  int kind = static_cast<int>(family);
  if (kind >= static_cast<int>(Special2::shifted_chebyshev_t)) {
    kind +=
        static_cast<int>(Special2::chebyshev_t) - static_cast<int>(Special2::shifted_chebyshev_t);
    x = 2 * x - 1;
  }
  family = static_cast<Special2>(kind);
  const double whole = std::trunc(degree);
  if (whole < 0) return 0;
  const bool trigonometric = kind <= static_cast<int>(Special2::chebyshev_w);
  if (trigonometric && whole > 1000) {
    if (std::fabs(x) <= 1) {
      const double angle = std::acos(x);
      switch (family) {
        case Special2::chebyshev_t:
          return std::cos(whole * angle);
        case Special2::chebyshev_u:
          if (std::fabs(x) == 1) return x > 0 || std::fmod(whole, 2) == 0 ? whole + 1 : -whole - 1;
          return std::sin((whole + 1) * angle) / std::sin(angle);
        case Special2::chebyshev_v:
          if (x == 1) return 1;
          if (x == -1) return std::fmod(whole, 2) == 0 ? 2 * whole + 1 : -2 * whole - 1;
          return std::cos((whole + 0.5) * angle) / std::cos(angle / 2);
        default:
          if (x == 1) return 2 * whole + 1;
          if (x == -1) return std::fmod(whole, 2) == 0 ? 1 : -1;
          return std::sin((whole + 0.5) * angle) / std::sin(angle / 2);
      }
    }
  }
  if (whole > 1e6) return kNan;
  const auto n = static_cast<int64_t>(whole);
  double before = 1, value = x;
  switch (family) {
    case Special2::chebyshev_t:
    case Special2::hermite_he:
    case Special2::legendre_p:
      break;
    case Special2::chebyshev_u:
    case Special2::hermite_h:
      value = 2 * x;
      break;
    case Special2::chebyshev_v:
      value = 2 * x - 1;
      break;
    case Special2::chebyshev_w:
      value = 2 * x + 1;
      break;
    case Special2::laguerre_l:
      value = 1 - x;
      break;
    default:
      return kNan;
  }
  if (n == 0) return 1;
  for (int64_t i = 1; i < n; ++i) {
    const auto k = static_cast<double>(i);
    double next;
    switch (family) {
      case Special2::hermite_h:
        next = 2 * (x * value - k * before);
        break;
      case Special2::hermite_he:
        next = x * value - k * before;
        break;
      case Special2::laguerre_l:
        next = ((2 * k + 1 - x) * value - k * before) / (k + 1);
        break;
      case Special2::legendre_p:
        next = ((2 * k + 1) * x * value - k * before) / (k + 1);
        break;
      default:
        next = 2 * x * value - before;
    }
    before = std::exchange(value, next);
    if (value - value != 0) return value;  // infinite or NaN from here on
  }
  return value;
}

}  // namespace lamina::tile

// Bessel functions, the error function's relatives, Airy's function.
#include "lamina/tile/special.h"

#include <cmath>
#include <limits>

namespace lamina::tile {
namespace {

#include "lamina/tile/special_tables.inl"

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
constexpr double kRootHalf = 0.70710678118654752440;

// c[0] / 2 + sum of c[k] T_k(t), by Clenshaw's recurrence.
double chebyshev(const double* c, int n, double t) {
  double b = 0, next = 0;
  for (int k = n - 1; k > 0; --k) {
    const double before = next;
    next = b;
    b = 2 * t * b - before + c[k];
  }
  return t * b - next + c[0] / 2;
}
template <int N>
double chebyshev(const double (&c)[N], double t) {
  return chebyshev(c, N, t);
}

// exp(-|x|) * I_n(x) for n 0 and 1.
double scaled_i0(double x) {
  x = std::fabs(x);
  return x <= 8 ? chebyshev(kI0Near, x / 4 - 1) : chebyshev(kI0Far, 16 / x - 1) / std::sqrt(x);
}
double scaled_i1(double x) {
  const double a = std::fabs(x);
  if (a <= 8) return x * chebyshev(kI1Near, a / 4 - 1);
  return std::copysign(chebyshev(kI1Far, 16 / a - 1) / std::sqrt(a), x);
}
// Where exp(x) alone overflows the product may not.
double grown(double scaled, double x) {
  const double half = std::exp(std::fabs(x) / 2);
  return scaled * half * half;
}

// K_n(x), times exp(x) where `scaled`.
double k0(double x, bool scaled) {
  if (!(x > 0)) return x == 0 ? kInf : kNan;
  if (x <= 2) {
    const double k = chebyshev(kK0Near, x * x / 2 - 1) - std::log(x / 2) * grown(scaled_i0(x), x);
    return scaled ? k * std::exp(x) : k;
  }
  return chebyshev(kK0Far, 4 / x - 1) / std::sqrt(x) * (scaled ? 1 : std::exp(-x));
}
double k1(double x, bool scaled) {
  if (!(x > 0)) return x == 0 ? kInf : kNan;
  if (x <= 2) {
    const double k =
        std::log(x / 2) * grown(scaled_i1(x), x) + chebyshev(kK1Near, x * x / 2 - 1) / x;
    return scaled ? k * std::exp(x) : k;
  }
  return chebyshev(kK1Far, 4 / x - 1) / std::sqrt(x) * (scaled ? 1 : std::exp(-x));
}

// exp(factor * x^2) with the rounding of the square put back; factor is a power of two.
double exp_square(double x, double factor) {
  const double square = x * x;
  return std::exp(factor * square) * (1 + factor * std::fma(x, x, -square));
}

// In (x - 4) / (x + 4), as Shepherd and Laframboise (1981).
double erfcx(double x) {
  if (x != x) return x;
  if (x < 0) return x < -27 ? kInf : 2 * exp_square(x, 1) - erfcx(-x);
  if (x > 1e8) return 0.56418958354775628695 / x;
  return chebyshev(kErfcx, (x - 4) / (x + 4)) / (1 + 2 * x);
}

double ndtr(double x) {
  if (x < -1 && x > -40) return 0.5 * exp_square(x, -0.5) * erfcx(-x * kRootHalf);
  return 0.5 * std::erfc(-x * kRootHalf);
}
double log_ndtr(double x) {
  if (x < -1) return std::log(erfcx(-x * kRootHalf) / 2) - x * x / 2;
  return std::log1p(-ndtr(-x));
}
// A starting value good to 4.5e-4 (Abramowitz and Stegun 26.2.23), then Halley's iteration.
double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInf : kInf;
  if (p > 0.5) {
    // Near 1 the distance to 1 is what counts, and it is exact.
    return -ndtri(1 - p);
  }
  const double t = std::sqrt(-2 * std::log(p));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) /
                 (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
             t;
  for (int i = 0; i < 3; ++i) {
    // Relative to p, so that nothing underflows: (ndtr(x) - p) / density(x).
    const double density = exp_square(x, -0.5) / 2.50662827463100050242;
    if (density == 0) break;
    const double step = (ndtr(x) - p) / density;
    x -= step / (1 + x * step / 2);
  }
  return x;
}

double logit(double x) {
  // log1p keeps the digits around one half.
  if (x > 0.25 && x < 0.75) return std::log1p((2 * x - 1) / (1 - x));
  return std::log(x / (1 - x));
}

double airy_ai(double x) {
  if (x != x) return x;
  if (x >= 0) {
    if (x <= 2) return chebyshev(kAiryPositive, x - 1);
    const double root = std::sqrt(x), zeta = x * root * (2.0 / 3);
    const double first = 1.8856180831641267 / zeta;
    return chebyshev(kAiryFar, 2 * first - 1) * std::exp(-zeta) / (2 * std::sqrt(kPi * root));
  }
  if (x >= -3) return chebyshev(kAiryNegative, x * (2.0 / 3) + 1);
  if (std::isinf(x)) return 0;
  const double z = -x, root = std::sqrt(z), zeta = z * root * (2.0 / 3);
  const double ratio = 3.4641016151377546 / zeta, t = 2 * ratio * ratio - 1;
  const double a = zeta - kPi / 4;
  return (chebyshev(kAiryCos, t) * std::cos(a) + chebyshev(kAirySin, t) / zeta * std::sin(a)) /
         std::sqrt(kPi * root);
}

double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::fabs(x) < 0.5) {
    const double t = x * x;
    return 1 - t / 6 * (1 - t / 20 * (1 - t / 42 * (1 - t / 72 * (1 - t / 110 * (1 - t / 156)))));
  }
  return std::sin(x) / x;
}

}  // namespace

double special(Special which, double x) {
  switch (which) {
    case Special::i0:
      return std::isinf(x) ? kInf : grown(scaled_i0(x), x);
    case Special::i0e:
      return scaled_i0(x);
    case Special::i1:
      return std::isinf(x) ? x : grown(scaled_i1(x), x);
    case Special::i1e:
      return scaled_i1(x);
    case Special::k0:
      return k0(x, false);
    case Special::k0e:
      return k0(x, true);
    case Special::k1:
      return k1(x, false);
    case Special::k1e:
      return k1(x, true);
    case Special::j0:
      return ::j0(x);
    case Special::j1:
      return ::j1(x);
    case Special::y0:
      return x == 0 ? -kInf : x < 0 ? kNan : ::y0(x);
    case Special::y1:
      return x == 0 ? -kInf : x < 0 ? kNan : ::y1(x);
    case Special::spherical_j0:
      return spherical_j0(x);
    case Special::erfcx:
      return erfcx(x);
    case Special::ndtr:
      return ndtr(x);
    case Special::ndtri:
      return ndtri(x);
    case Special::log_ndtr:
      return log_ndtr(x);
    case Special::logit:
      return logit(x);
    case Special::airy_ai:
      return airy_ai(x);
  }
  return kNan;
}

double special2(Special2 which, double x, double y) {
  switch (which) {
    case Special2::zeta:
      return special_zeta(x, y);
    case Special2::igamma:
      return special_igamma(x, y, false);
    case Special2::igammac:
      return special_igamma(x, y, true);
    case Special2::polygamma:
      return special_polygamma(x, y);
    default:
      return special_polynomial(which, x, y);
  }
}

}  // namespace lamina::tile

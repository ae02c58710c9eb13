#include "lamina/cpu/variates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lamina/tile/tile.h"

namespace lamina::cpu {

namespace {

constexpr double kPi = 3.14159265358979323846;

// In (0, 1), never an end.
double uniform_inside(Mt19937Generator& g) {
  return (static_cast<double>(g.random64() >> 11) + 0.5) * 0x1p-53;
}

// One normal number a call (Box and Muller, 1958).
double normal_number(Mt19937Generator& g) {
  const double radius = std::sqrt(-2 * std::log(uniform_inside(g)));
  return radius * std::cos(2 * kPi * uniform_inside(g));
}

// log(k!) - (k + 1/2) log(k + 1) + (k + 1) - log(2 pi) / 2: the rest of Stirling's series.
double stirling_rest(double k) {
  constexpr double kFirst[] = {0.08106146679532726, 0.04134069595540929, 0.02767792568499834,
                               0.02079067210376509, 0.01664469118982119, 0.01387612882307075,
                               0.01189670994589177, 0.01041126526197209, 0.009255462182712733,
                               0.008330563433362871};
  if (k < 10) return kFirst[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// For small means: how many uniforms until their product falls below exp(-rate).
double poisson_by_product(double rate, Mt19937Generator& g) {
  const double limit = std::exp(-rate);
  double count = 0;
  for (double product = uniform_inside(g); product > limit; product *= uniform_inside(g)) ++count;
  return count;
}

// Transformed rejection with squeeze, "PTRS": W. Hoermann, "The transformed rejection method for
// generating Poisson random variables", Insurance: Mathematics and Economics 12 (1993).
double poisson_by_rejection(double rate, Mt19937Generator& g) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4), v_limit = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform_inside(g) - 0.5, v = uniform_inside(g);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_limit) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

// For few expected successes: the gaps between successes are geometric (Devroye, 1986, chapter X).
double binomial_by_gaps(double count, double p, Mt19937Generator& g) {
  const double log_q = std::log1p(-p);
  double successes = 0;
  for (double at = 0;; ++successes) {
    at += std::ceil(std::log(uniform_inside(g)) / log_q);
    if (!(at <= count)) return successes;
  }
}

// Transformed rejection, "BTRS": W. Hoermann, "The generation of binomial random variates", Journal
// of Statistical Computation and Simulation 46 (1993); p at most 1/2, at least ten successes
// expected.
double binomial_by_rejection(double count, double p, Mt19937Generator& g) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double center = count * p + 0.5, v_limit = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * deviation, odds = p / (1 - p);
  const double mode = std::floor((count + 1) * p);
  for (;;) {
    const double u = uniform_inside(g) - 0.5;
    double v = uniform_inside(g);
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + center);
    if (us >= 0.07 && v <= v_limit) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) +
                         stirling_rest(mode) + stirling_rest(count - mode) - stirling_rest(k) -
                         stirling_rest(count - k);
    if (v <= bound) return k;
  }
}

double binomial_number(double count, double p, Mt19937Generator& g) {
  if (!(count > 0) || p <= 0) return std::isnan(count) || std::isnan(p) ? count + p : 0;
  if (p >= 1) return count;
  if (p > 0.5) return count - binomial_number(count, 1 - p, g);
  return count * p >= 10 ? binomial_by_rejection(count, p, g) : binomial_by_gaps(count, p, g);
}

// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", ACM Transactions on
// Mathematical Software 26 (2000); shapes below 1 by way of alpha + 1.
double gamma_number(double alpha, Mt19937Generator& g) {
  double scale = 1;
  if (alpha < 1) {
    scale = std::pow(uniform_inside(g), 1 / alpha);
    alpha += 1;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal_number(g), y = 1 + c * x;
    if (y <= 0) continue;
    const double v = y * y * y, u = uniform_inside(g), xx = x * x;
    if (u < 1 - 0.0331 * xx * xx || std::log(u) < 0.5 * xx + d * (1 - v + std::log(v)))
      return scale * d * v;
  }
}

double digamma(double x) {
  double result;
  tile::direct_loop(tile::Op::digamma, ScalarType::Float64)(&result, &x, nullptr, nullptr, 1);
  return result;
}

}  // namespace

void poisson(double* out, const double* rate, int64_t n, Mt19937Generator& g) {
  const std::lock_guard lock(g.mutex());
  for (int64_t i = 0; i < n; ++i)
    out[i] = rate[i] == 0   ? 0
             : rate[i] < 10 ? poisson_by_product(rate[i], g)
                            : poisson_by_rejection(rate[i], g);
}

void binomial(double* out, const double* count, const double* p, int64_t n, Mt19937Generator& g) {
  const std::lock_guard lock(g.mutex());
  for (int64_t i = 0; i < n; ++i) out[i] = binomial_number(count[i], p[i], g);
}

void standard_gamma(double* out, const double* alpha, int64_t n, Mt19937Generator& g) {
  const std::lock_guard lock(g.mutex());
  for (int64_t i = 0; i < n; ++i)
    out[i] = std::max(gamma_number(alpha[i], g), std::numeric_limits<double>::min());
}

double standard_gamma_grad(double alpha, double x) {
  if (!(x > 0) || !(alpha > 0)) return std::numeric_limits<double>::quiet_NaN();
  // P is x^alpha exp(-x) times the sum of x^k / Gamma(alpha + k + 1); its derivative by alpha
  // multiplies each term by log(x) - digamma(alpha + k + 1); by x it is x^(alpha - 1) exp(-x) /
  // Gamma(alpha).
  constexpr double kLargest = 1000;
  if (alpha <= kLargest && x < 4 * kLargest) {
    double term = x / alpha, slope = std::log(x) - digamma(alpha + 1), sum = 0;
    for (int k = 0; k < 20000; ++k) {
      sum += term * slope;
      const double next = alpha + k + 1;
      slope -= 1 / next;
      term *= x / next;
      if (next > x && std::abs(term * slope) <= 1e-16 * std::abs(sum)) break;
    }
    return -sum;
  }
  // alpha (1 - 1 / (9 alpha) + z / (3 sqrt(alpha)))^3 has nearly a gamma distribution for a normal
  // z (Wilson and Hilferty, 1931): the derivative at that z.
  const double root = std::cbrt(x / alpha);
  const double z = (root - 1 + 1 / (9 * alpha)) * 3 * std::sqrt(alpha);
  return root * root * root +
         3 * alpha * root * root * (1 / (9 * alpha * alpha) - z / (6 * alpha * std::sqrt(alpha)));
}

}  // namespace lamina::cpu

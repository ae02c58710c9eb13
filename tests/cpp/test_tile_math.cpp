// Elementary functions: error bounds in units of the last place, special values, independence of
// position.
#include <gtest/gtest.h>

#include "tests/cpp/tile_testing.h"

namespace lamina::tile {
namespace {

using testing::at_every_level;

template <class T>
std::vector<T> samples() {
  std::vector<T> v = {T(0.0),
                      T(-0.0),
                      T(INFINITY),
                      T(-INFINITY),
                      T(NAN),
                      T(1),
                      T(-1),
                      T(0.5),
                      T(-0.5),
                      T(2),
                      T(-2),
                      T(88.7),
                      T(-87.4),
                      T(-103.9),
                      T(709.7),
                      T(-745.1),
                      T(1e5),
                      T(1e10),
                      T(1e20),
                      std::numeric_limits<T>::min(),
                      -std::numeric_limits<T>::min(),
                      std::numeric_limits<T>::denorm_min(),
                      std::numeric_limits<T>::max(),
                      -std::numeric_limits<T>::max()};
  std::mt19937_64 g(5);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int i = 0; i < 4000; ++i) {
    v.push_back(static_cast<T>(normal(g)));
    v.push_back(static_cast<T>(unit(g)));
    v.push_back(static_cast<T>(1 + unit(g) * 1e-3));
    v.push_back(static_cast<T>(unit(g) * 100));
    v.push_back(static_cast<T>(std::exp(unit(g) * 40)));
  }
  return v;
}

template <class T>
double ulps(T got, long double exact) {
  const T rounded = static_cast<T>(exact);
  if (std::isnan(rounded) || std::isnan(got))
    return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    return std::fabs(got) == std::numeric_limits<T>::max() ||
                   std::fabs(rounded) == std::numeric_limits<T>::max()
               ? 1
               : INFINITY;
  }
  if (rounded == 0 && got == 0) return std::signbit(rounded) == std::signbit(got) ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(rounded, &exponent);
  const long double unit =
      std::ldexp(1.0L, std::max(exponent, std::numeric_limits<T>::min_exponent) -
                           std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs((static_cast<long double>(got) - exact) / unit));
}

template <class T>
void check(Op op, long double (*exact)(long double), double bound) {
  const auto x = samples<T>();
  std::vector<T> y(x.size());
  const DirectLoop loop = direct_loop(op, scalar_type_of<T>);
  loop(y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(ulps(y[i], exact(x[i])), bound) << op_info(op).name << '(' << x[i] << ") = " << y[i];
    if (i % 16) continue;
    T alone;
    loop(&alone, &x[i], nullptr, nullptr, 1);
    ASSERT_TRUE(std::memcmp(&alone, &y[i], sizeof(T)) == 0 ||
                (std::isnan(alone) && std::isnan(y[i])))
        << op_info(op).name << ' ' << x[i];
  }
}

TEST(TileMath, ErrorsStayWithinFourUlp) {
  at_every_level([] {
#define LAMINA_CHECK_FUNCTION(name)                                                     \
  check<float>(Op::name, [](long double v) -> long double { return std::name(v); }, 4); \
  check<double>(Op::name, [](long double v) -> long double { return std::name(v); }, 4);
    LAMINA_CHECK_FUNCTION(exp)
    LAMINA_CHECK_FUNCTION(exp2)
    LAMINA_CHECK_FUNCTION(expm1)
    LAMINA_CHECK_FUNCTION(log)
    LAMINA_CHECK_FUNCTION(log2)
    LAMINA_CHECK_FUNCTION(log10)
    LAMINA_CHECK_FUNCTION(log1p)
    LAMINA_CHECK_FUNCTION(sin)
    LAMINA_CHECK_FUNCTION(cos)
    LAMINA_CHECK_FUNCTION(tan)
    LAMINA_CHECK_FUNCTION(asin)
    LAMINA_CHECK_FUNCTION(acos)
    LAMINA_CHECK_FUNCTION(atan)
    LAMINA_CHECK_FUNCTION(sinh)
    LAMINA_CHECK_FUNCTION(cosh)
    LAMINA_CHECK_FUNCTION(tanh)
    LAMINA_CHECK_FUNCTION(asinh)
    LAMINA_CHECK_FUNCTION(acosh)
    LAMINA_CHECK_FUNCTION(atanh)
    LAMINA_CHECK_FUNCTION(erf)
    LAMINA_CHECK_FUNCTION(erfc)
    LAMINA_CHECK_FUNCTION(sqrt)
#undef LAMINA_CHECK_FUNCTION
  });
}

template <class T>
void check_two(Op op, long double (*exact)(long double, long double), double bound) {
  const auto x = samples<T>();
  std::vector<T> a, b;
  for (size_t i = 0; i < x.size(); ++i) {
    a.push_back(x[i]);
    b.push_back(x[i * 7919 % x.size()]);
  }
  for (size_t i = 0; i < 24; ++i)
    for (size_t j = 0; j < 24; ++j) {
      a.push_back(x[i]);
      b.push_back(x[j]);
    }
  std::vector<T> y(a.size());
  direct_loop(op, scalar_type_of<T>)(y.data(), a.data(), b.data(), nullptr,
                                     static_cast<int64_t>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(ulps(y[i], exact(a[i], b[i])), bound)
        << op_info(op).name << '(' << a[i] << ", " << b[i] << ") = " << y[i];
}

TEST(TileMath, FunctionsOfTwo) {
  at_every_level([] {
    check_two<float>(
        Op::pow, [](long double a, long double b) -> long double { return std::pow(a, b); }, 4);
    check_two<double>(
        Op::pow, [](long double a, long double b) -> long double { return std::pow(a, b); }, 4);
    check_two<float>(
        Op::atan2, [](long double a, long double b) -> long double { return std::atan2(a, b); }, 4);
    check_two<double>(
        Op::atan2, [](long double a, long double b) -> long double { return std::atan2(a, b); }, 4);
    check_two<float>(
        Op::hypot, [](long double a, long double b) -> long double { return std::hypot(a, b); }, 4);
    check_two<double>(
        Op::hypot, [](long double a, long double b) -> long double { return std::hypot(a, b); }, 4);
  });
}

TEST(TileMath, ExactWhereUsersExpectIt) {
  at_every_level([] {
    const auto of = [](Op op, double v) {
      double d = v, r = 0;
      float f = static_cast<float>(v), s = 0;
      direct_loop(op, ScalarType::Float64)(&r, &d, nullptr, nullptr, 1);
      direct_loop(op, ScalarType::Float32)(&s, &f, nullptr, nullptr, 1);
      EXPECT_EQ(static_cast<float>(r), s) << op_info(op).name << ' ' << v;
      return r;
    };
    EXPECT_EQ(of(Op::exp, 0), 1);
    EXPECT_EQ(of(Op::log, 1), 0);
    EXPECT_EQ(of(Op::cos, 0), 1);
    EXPECT_EQ(of(Op::exp2, 10), 1024);
    EXPECT_EQ(of(Op::sigmoid, 0), 0.5);
    EXPECT_EQ(of(Op::silu, 0), 0);
    EXPECT_EQ(of(Op::gelu, 0), 0);
    EXPECT_EQ(of(Op::log_sigmoid, INFINITY), 0);
    EXPECT_EQ(of(Op::log_sigmoid, -INFINITY), -INFINITY);
    EXPECT_EQ(of(Op::log1p_exp, INFINITY), INFINITY);
    EXPECT_EQ(of(Op::erfinv, 1), INFINITY);
  });
}

TEST(TileMath, ScalarFunctions) {
  const auto of = [](Op op, double v) {
    double r = 0;
    direct_loop(op, ScalarType::Float64)(&r, &v, nullptr, nullptr, 1);
    return r;
  };
  for (double x : {-0.999999, -0.9, -0.5, -1e-3, 1e-10, 0.3, 0.7, 0.99, 0.9999999})
    EXPECT_NEAR(std::erf(of(Op::erfinv, x)), x, 2e-16) << x;
  EXPECT_NEAR(of(Op::digamma, 1), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(of(Op::digamma, 0.5), -1.9635100260214235, 1e-14);
  EXPECT_NEAR(of(Op::digamma, -0.5), 0.03648997397857652, 1e-14);
  EXPECT_TRUE(std::isnan(of(Op::digamma, -2)));
  EXPECT_NEAR(of(Op::lgamma, 10), 12.801827480081469, 1e-13);
}

}  // namespace
}  // namespace lamina::tile

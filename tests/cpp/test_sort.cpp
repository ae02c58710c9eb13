#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/sort.h"

namespace cpu = lamina::cpu;
using lamina::ScalarType;

namespace {

template <class T>
bool less(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return std::isnan(y) ? !std::isnan(x) : x < y;
  }
}

template <class T>
void check(int64_t n, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> v(n), sorted(n), top(n);
  for (T& x : v) {
    if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(random() >> (random() % 60));
    } else {
      const int kind = static_cast<int>(random() % 20);
      x = kind == 0   ? T(std::numeric_limits<float>::quiet_NaN())
          : kind == 1 ? T(-0.0f)
          : kind == 2 ? T(0.0f)
          : kind == 3 ? T(-std::numeric_limits<float>::infinity())
                      : T(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 8);
    }
  }
  std::vector<int64_t> expected(n), indices(n);
  for (bool descending : {false, true}) {
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
      return descending ? less(v[b], v[a]) : less(v[a], v[b]);
    });
    cpu::sort_rows(sorted.data(), indices.data(), v.data(), 1, n, n, 1, lamina::scalar_type_of<T>,
                   descending);
    ASSERT_EQ(indices, expected);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(std::memcmp(&sorted[i], &v[indices[i]], sizeof(T)), 0);
    for (int64_t k : {int64_t{1}, int64_t{10}, int64_t{60}, n}) {
      if (k > n) continue;
      cpu::topk_rows(top.data(), indices.data(), v.data(), 1, n, k, n, 1, lamina::scalar_type_of<T>,
                     descending);
      ASSERT_TRUE(std::equal(expected.begin(), expected.begin() + k, indices.begin()))
          << n << " " << k;
    }
  }
}

TEST(Sort, EveryTypeStableInBothDirections) {
  for (int64_t n : {1, 2, 50, 96, 97, 1000, 5000}) {
    check<float>(n, 1);
    check<double>(n, 2);
    check<lamina::Half>(n, 3);
    check<lamina::BFloat16>(n, 4);
    check<int8_t>(n, 5);
    check<uint8_t>(n, 6);
    check<int16_t>(n, 7);
    check<int32_t>(n, 8);
    check<int64_t>(n, 9);
    check<uint64_t>(n, 10);
  }
}

TEST(Sort, StridedRows) {
  const std::vector<int32_t> v{3, 30, 1, 10, 2, 20};  // columns of a (3, 2) array
  std::vector<int32_t> out(6);
  std::vector<int64_t> indices(6);
  cpu::sort_rows(out.data(), indices.data(), v.data(), 2, 3, 1, 2, ScalarType::Int32, false);
  EXPECT_EQ(out, (std::vector<int32_t>{1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(indices, (std::vector<int64_t>{1, 2, 0, 1, 2, 0}));
  cpu::topk_rows(out.data(), indices.data(), v.data(), 2, 3, 2, 1, 2, ScalarType::Int32, true);
  EXPECT_EQ(std::vector<int32_t>(out.begin(), out.begin() + 4),
            (std::vector<int32_t>{3, 2, 30, 20}));
  EXPECT_THROW(
      cpu::topk_rows(out.data(), indices.data(), v.data(), 2, 3, 4, 1, 2, ScalarType::Int32, true),
      lamina::Error);
  EXPECT_THROW(
      cpu::sort_rows(out.data(), indices.data(), v.data(), 1, 1, 1, 1, ScalarType::Complex64, true),
      lamina::Error);
}

TEST(Sort, Searchsorted) {
  const std::vector<float> s{1, 3, 3, 7};
  const std::vector<float> v{0, 3, 8, std::numeric_limits<float>::quiet_NaN()};
  std::vector<int64_t> out(4);
  cpu::searchsorted(out.data(), s.data(), 1, 4, v.data(), 1, 4, ScalarType::Float32, false);
  EXPECT_EQ(out, (std::vector<int64_t>{0, 1, 4, 4}));
  cpu::searchsorted(out.data(), s.data(), 1, 4, v.data(), 1, 4, ScalarType::Float32, true);
  EXPECT_EQ(out, (std::vector<int64_t>{0, 3, 4, 4}));
}

}  // namespace

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/gemm.h"
#include "lamina/queue/parallel.h"

namespace cpu = lamina::cpu;
namespace queue = lamina::queue;
using lamina::ScalarType;

namespace {

struct ThreadsGuard {
  explicit ThreadsGuard(int n) : before(queue::get_num_threads()) { queue::set_num_threads(n); }
  ~ThreadsGuard() { queue::set_num_threads(before); }
  int before;
};

// A matrix in a buffer with gaps; strides may be negative.
template <class T>
struct Matrix {
  std::vector<T> buffer;
  int64_t origin, row, col;
  T* data() { return buffer.data() + origin; }
  T& operator()(int64_t i, int64_t j) { return data()[i * row + j * col]; }
};

enum Layout { kRows, kCols, kPadded, kStrided, kReversed, kLayouts };

template <class T>
Matrix<T> make(int64_t m, int64_t n, int layout, std::mt19937& random) {
  Matrix<T> r;
  r.origin = 0;
  switch (layout) {
    case kRows:
      r.row = n, r.col = 1;
      break;
    case kCols:
      r.row = 1, r.col = m;
      break;
    case kPadded:
      r.row = n + 5, r.col = 1;
      break;
    case kStrided:
      r.row = 2 * n + 1, r.col = 2;
      break;
    default:
      r.row = -n, r.col = 1, r.origin = n * (m > 0 ? m - 1 : 0);
  }
  r.buffer.resize((m + 1) * (2 * n + 6) + 8);
  for (T& v : r.buffer) {
    const int x = static_cast<int>(random() % 15) - 7, y = static_cast<int>(random() % 15) - 7;
    if constexpr (lamina::is_complex_type<T>)
      v = T(x, y);
    else if constexpr (std::is_same_v<T, bool>)
      v = x > 3;
    else
      v = static_cast<T>(static_cast<float>(x));
  }
  return r;
}

template <class T, class U>
cpu::Gemm describe(Matrix<T>& a, Matrix<T>& b, Matrix<U>& c, int64_t m, int64_t n, int64_t k) {
  cpu::Gemm g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data(), g.a_row_stride = a.row, g.a_col_stride = a.col;
  g.b = b.data(), g.b_row_stride = b.row, g.b_col_stride = b.col;
  g.c = c.data(), g.c_row_stride = c.row, g.c_col_stride = c.col;
  g.dtype = lamina::scalar_type_of<T>;
  return g;
}

struct ForceGuard {
  explicit ForceGuard(const char* name) { cpu::force_gemm(name); }
  ~ForceGuard() { cpu::force_gemm(nullptr); }
};

// Small integers multiply exactly in every type, so every kernel must agree with the reference to
// the bit.
template <class T>
void check_all_kernels(bool conjugate = false) {
  std::mt19937 random(7);
  const int sizes[][3] = {{1, 1, 1},   {2, 3, 4},    {1, 40, 17},   {33, 1, 9},
                          {7, 19, 70}, {97, 33, 12}, {65, 130, 300}};
  for (auto& [m, n, k] : sizes)
    for (int la = 0; la < kLayouts; ++la)
      for (int variant = 0; variant < 3; ++variant) {
        const int lb = (la + variant) % kLayouts, lc = (la + 2 * variant + 1) % 4;
        auto a = make<T>(m, k, la, random);
        auto b = make<T>(k, n, lb, random);
        auto c = make<T>(m, n, lc, random);
        cpu::Gemm g = describe(a, b, c, m, n, k);
        g.conj_a = conjugate && variant != 1;
        g.conj_b = conjugate && variant != 2;
        if (variant == 1 && !std::is_same_v<T, bool>) g.alpha = 2, g.beta = 3;
        if (variant == 2 && !std::is_same_v<T, bool>) g.alpha = -1, g.beta = 1;
        const auto before = c.buffer;
        cpu::force_gemm("reference");
        cpu::gemm(g);
        const auto expected = c.buffer;
        for (const cpu::GemmCandidate& kernel : cpu::gemm_candidates()) {
          const char* reason = nullptr;
          if (!kernel.accepts(g, &reason)) {
            ASSERT_NE(reason, nullptr);
            continue;
          }
          ForceGuard force(kernel.name);
          c.buffer = before;
          cpu::gemm(g);
          ASSERT_TRUE(c.buffer == expected)
              << kernel.name << " " << m << "x" << n << "x" << k << " layouts " << la << lb << lc
              << " variant " << variant;
        }
        cpu::force_gemm(nullptr);
      }
}

TEST(Gemm, KernelsAgreeInFloat) { check_all_kernels<float>(); }
TEST(Gemm, KernelsAgreeInDouble) { check_all_kernels<double>(); }
TEST(Gemm, KernelsAgreeInComplex64) {
  check_all_kernels<std::complex<float>>();
  check_all_kernels<std::complex<float>>(true);
}
TEST(Gemm, KernelsAgreeInComplex128) { check_all_kernels<std::complex<double>>(true); }
TEST(Gemm, KernelsAgreeInIntegers) {
  check_all_kernels<int8_t>();
  check_all_kernels<uint8_t>();
  check_all_kernels<int16_t>();
  check_all_kernels<int32_t>();
  check_all_kernels<uint32_t>();
  check_all_kernels<int64_t>();
  check_all_kernels<uint64_t>();
}

template <class T>
void check_small_floats() {
  std::mt19937 random(3);
  // Odd and even k, one piece of k and several, both operands along and across their rows.
  for (auto [m, n, k, a_layout, b_layout] :
       {std::tuple{5, 7, 9, kRows, kCols}, std::tuple{70, 40, 300, kRows, kCols},
        std::tuple{128, 128, 600, kRows, kRows}, std::tuple{37, 70, 75, kCols, kRows},
        std::tuple{25, 64, 1031, kCols, kCols}, std::tuple{40, 300, 77, kRows, kRows}}) {
    auto a = make<T>(m, k, a_layout, random), b = make<T>(k, n, b_layout, random),
         c = make<T>(m, n, kRows, random);
    cpu::Gemm g = describe(a, b, c, m, n, k);
    cpu::gemm(g);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += float(a(i, p)) * float(b(p, j));
        ASSERT_EQ(c(i, j).bits, T(sum).bits);  // exact in float, rounded once
      }
    auto before = c;
    g.alpha = 2, g.beta = -1;
    cpu::gemm(g);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += float(a(i, p)) * float(b(p, j));
        ASSERT_EQ(c(i, j).bits, T(2 * sum - float(before(i, j))).bits);
      }
  }
}
TEST(Gemm, HalfAndBFloat16RoundOnce) {
  check_small_floats<lamina::Half>();
  check_small_floats<lamina::BFloat16>();
}

TEST(Gemm, IntegersWrap) {
  std::vector<int8_t> a(4, 100), b(4, 100), c(1);
  cpu::Gemm g;
  g.m = g.n = 1, g.k = 4;
  g.a = a.data(), g.a_row_stride = 4, g.a_col_stride = 1;
  g.b = b.data(), g.b_row_stride = 1, g.b_col_stride = 1;
  g.c = c.data(), g.c_row_stride = 1, g.c_col_stride = 1;
  g.dtype = ScalarType::Int8;
  cpu::gemm(g);
  EXPECT_EQ(c[0], static_cast<int8_t>(40000));
}

TEST(Gemm, EmptyInnerSizeAndScalars) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t size : {3, 40, 200}) {
    std::vector<float> a(size * size, 1), b(size * size, 1), c(size * size, nan);
    cpu::Gemm g;
    g.m = g.n = g.k = size;
    g.a = a.data(), g.b = b.data(), g.c = c.data();
    g.a_row_stride = g.b_row_stride = g.c_row_stride = size;
    g.a_col_stride = g.b_col_stride = g.c_col_stride = 1;
    cpu::gemm(g);
    EXPECT_EQ(c[0], static_cast<float>(size));  // beta 0 ignores NaN in C
    g.beta = 2, g.k = 0;
    cpu::gemm(g);
    EXPECT_EQ(c[1], static_cast<float>(2 * size));
    g.k = size, g.alpha = 0, g.beta = 0.5;
    a.assign(a.size(), nan);
    cpu::gemm(g);
    EXPECT_EQ(c[2], static_cast<float>(size));
    g.beta = 0;
    c.assign(c.size(), nan);
    cpu::gemm(g);
    EXPECT_EQ(c.back(), 0.0f);
    g.m = 0;
    cpu::gemm(g);
  }
}

TEST(Gemm, BroadcastOperands) {
  std::vector<float> row(100), b(100 * 50), c(60 * 50), expected(50);
  std::mt19937 random(2);
  for (float& v : row) v = static_cast<float>(random() % 9);
  for (float& v : b) v = static_cast<float>(random() % 9);
  cpu::Gemm g;
  g.m = 60, g.n = 50, g.k = 100;
  g.a = row.data(), g.a_row_stride = 0, g.a_col_stride = 1;
  g.b = b.data(), g.b_row_stride = 50, g.b_col_stride = 1;
  g.c = c.data(), g.c_row_stride = 50, g.c_col_stride = 1;
  cpu::gemm(g);
  for (int p = 0; p < 100; ++p)
    for (int j = 0; j < 50; ++j) expected[j] += row[p] * b[p * 50 + j];
  for (int i = 0; i < 60; ++i)
    for (int j = 0; j < 50; ++j) ASSERT_EQ(c[i * 50 + j], expected[j]);
}

template <class T>
std::vector<T> noise(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> v(n);
  for (T& x : v) {
    const float f = static_cast<float>(random()) / 4294967296.0f - 0.5f;
    if constexpr (std::is_integral_v<T>)
      x = static_cast<T>(random());
    else
      x = T(f);
  }
  return v;
}

template <class T>
void check_bits(int64_t m, int64_t n, int64_t k, const char* kernel) {
  auto a = noise<T>(m * k, 1), b = noise<T>(k * n, 2);
  std::vector<T> c(m * n), first;
  cpu::Gemm g;
  g.m = m, g.n = n, g.k = k, g.dtype = lamina::scalar_type_of<T>;
  g.a = a.data(), g.a_row_stride = k, g.a_col_stride = 1;
  g.b = b.data(), g.b_row_stride = n, g.b_col_stride = 1;
  g.c = c.data(), g.c_row_stride = n, g.c_col_stride = 1;
  ForceGuard force(kernel);
  for (int threads : {1, 2, 7}) {
    ThreadsGuard guard(threads);
    std::memset(static_cast<void*>(c.data()), 0, c.size() * sizeof(T));
    cpu::gemm(g);
    if (first.empty()) first = c;
    ASSERT_EQ(std::memcmp(first.data(), c.data(), c.size() * sizeof(T)), 0) << threads;
  }
}
TEST(Gemm, BitsDoNotDependOnThreads) {
  for (auto [m, n, k] : {std::array{300, 200, 500}, std::array{1, 3000, 700},
                         std::array{2500, 1, 800}, std::array{130, 257, 129}}) {
    check_bits<float>(m, n, k, nullptr);
    check_bits<float>(m, n, k, "packed");
    check_bits<double>(m, n, k, nullptr);
    check_bits<std::complex<float>>(m, n, k, nullptr);
    check_bits<lamina::BFloat16>(m, n, k, nullptr);
    check_bits<int32_t>(m, n, k, nullptr);
  }
}

TEST(Gemm, CutsOfLargeProductsAreSeamless) {
  // More rows, columns and k than are packed at once.
  for (auto [m, n, k] :
       {std::array{4100, 9, 11}, std::array{5, 4200, 7}, std::array{6, 17, 5000}}) {
    auto a = noise<int32_t>(int64_t{m} * k, 4), b = noise<int32_t>(int64_t{k} * n, 5);
    std::vector<int32_t> c(int64_t{m} * n), d(c);
    cpu::Gemm g;
    g.m = m, g.n = n, g.k = k, g.dtype = ScalarType::Int32;
    g.a = a.data(), g.a_row_stride = k, g.a_col_stride = 1;
    g.b = b.data(), g.b_row_stride = n, g.b_col_stride = 1;
    g.c = c.data(), g.c_row_stride = n, g.c_col_stride = 1;
    cpu::gemm(g);
    ForceGuard force("reference");
    g.c = d.data();
    cpu::gemm(g);
    ASSERT_TRUE(c == d);
  }
}

TEST(Bmm, EachMatrixOfTheBatch) {
  for (auto [batch, m, n, k] :
       {std::array{5, 3, 4, 5}, std::array{40, 33, 20, 17}, std::array{3, 200, 210, 220}}) {
    auto a = noise<float>(int64_t{batch} * m * k, 1), b = noise<float>(int64_t{k} * n, 2);
    std::vector<float> c(int64_t{batch} * m * n), one(int64_t{m} * n), first;
    cpu::BatchedGemm g;
    g.gemm.m = m, g.gemm.n = n, g.gemm.k = k, g.batch = batch;
    g.gemm.a = a.data(), g.gemm.a_row_stride = k, g.gemm.a_col_stride = 1, g.a_batch_stride = m * k;
    g.gemm.b = b.data(), g.gemm.b_row_stride = n, g.gemm.b_col_stride = 1, g.b_batch_stride = 0;
    g.gemm.c = c.data(), g.gemm.c_row_stride = n, g.gemm.c_col_stride = 1, g.c_batch_stride = m * n;
    for (int threads : {1, 2, 7}) {
      ThreadsGuard guard(threads);
      c.assign(c.size(), 0);
      cpu::bmm(g);
      if (first.empty()) first = c;
      ASSERT_EQ(std::memcmp(first.data(), c.data(), c.size() * 4), 0);
    }
    for (int i = 0; i < batch; ++i) {
      cpu::Gemm single = g.gemm;
      single.a = a.data() + int64_t{i} * m * k;
      single.c = one.data();
      cpu::gemm(single);
      ASSERT_EQ(std::memcmp(one.data(), c.data() + int64_t{i} * m * n, one.size() * 4), 0);
    }
  }
}

TEST(Gemv, Strides) {
  std::mt19937 random(9);
  auto a = make<float>(50, 70, kPadded, random);
  std::vector<float> x(140), y(150, 1);
  for (float& v : x) v = static_cast<float>(random() % 9);
  cpu::Gemv g;
  g.m = 50, g.n = 70, g.a = a.data(), g.a_row_stride = a.row, g.a_col_stride = a.col;
  for (int64_t x_stride : {2, -2})
    for (int64_t y_stride : {3, -3}) {
      y.assign(150, 1);
      g.x = x.data() + (x_stride < 0 ? 138 : 0), g.x_stride = x_stride;
      g.y = y.data() + (y_stride < 0 ? 147 : 0), g.y_stride = y_stride;
      g.beta = 1;
      cpu::gemv(g);
      for (int i = 0; i < 50; ++i) {
        float sum = 1;
        for (int j = 0; j < 70; ++j) sum += a(i, j) * static_cast<const float*>(g.x)[j * x_stride];
        ASSERT_EQ(static_cast<float*>(g.y)[i * y_stride], sum);
      }
      ASSERT_EQ(y[1], 1.0f);
    }
}

TEST(Dot, AccurateAndIndependentOfThreads) {
  for (int64_t n : {0, 1, 5, 1000, 8192, 8193, 1000003}) {
    auto x = noise<float>(n, 1), y = noise<float>(n, 2);
    double expected = 0;
    for (int64_t i = 0; i < n; ++i) expected += double(x[i]) * y[i];
    float first = 0;
    for (int threads : {1, 2, 7}) {
      ThreadsGuard guard(threads);
      float out = -1;
      cpu::dot(n, x.data(), 1, y.data(), 1, &out, ScalarType::Float32);
      EXPECT_NEAR(out, expected, 1e-3 + 1e-6 * std::abs(expected));
      if (threads == 1) first = out;
      EXPECT_EQ(out, first);
    }
  }
  std::vector<std::complex<double>> u{{1, 2}, {3, -1}}, v{{2, 1}, {0, 5}};
  std::complex<double> out;
  cpu::dot(2, u.data(), 1, v.data(), 1, &out, ScalarType::Complex128, true);
  EXPECT_EQ(out, std::conj(u[0]) * v[0] + std::conj(u[1]) * v[1]);
}

TEST(Gemm, FillRowsThenAdd) {
  std::vector<float> bias{1, 2, 3}, c(6);
  cpu::fill_rows(2, 3, bias.data(), 1, c.data(), 3, 1, ScalarType::Float32);
  EXPECT_EQ(c, (std::vector<float>{1, 2, 3, 1, 2, 3}));
  cpu::fill_rows(2, 3, bias.data(), 0, c.data(), 1, 2, ScalarType::Float32);
  EXPECT_EQ(c, (std::vector<float>{1, 1, 1, 1, 1, 1}));
}

TEST(Gemm, ForcingIsChecked) {
  EXPECT_THROW(cpu::force_gemm("no such kernel"), lamina::Error);
  std::vector<int32_t> a(400), c(400);
  cpu::Gemm g;
  g.m = g.n = g.k = 20, g.dtype = ScalarType::Int32;
  g.a = a.data(), g.b = a.data(), g.c = c.data();
  g.a_row_stride = g.b_row_stride = g.c_row_stride = 20;
  g.a_col_stride = g.b_col_stride = g.c_col_stride = 1;
  EXPECT_STREQ(cpu::choose_gemm(g).name, "packed");
  ForceGuard force("blas");
  EXPECT_THROW(cpu::gemm(g), lamina::Error);
  EXPECT_NE(std::string(cpu::blas_name()).find("OpenBLAS"), std::string::npos);
}

TEST(Gemm, SeveralUserThreads) {
  std::vector<std::thread> users;
  for (int u = 0; u < 4; ++u)
    users.emplace_back([] {
      for (int i = 0; i < 20; ++i) check_bits<float>(100, 90, 80, nullptr);
    });
  for (auto& u : users) u.join();
}

}  // namespace

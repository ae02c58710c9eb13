#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/cpu/index_kernels.h"
#include "lamina/queue/parallel.h"

namespace cpu = lamina::cpu;
namespace queue = lamina::queue;
using cpu::ConstStrided;
using cpu::Strided;
using lamina::ScalarType;

namespace {

struct ThreadsGuard {
  explicit ThreadsGuard(int n) : before(queue::get_num_threads()) { queue::set_num_threads(n); }
  ~ThreadsGuard() { queue::set_num_threads(before); }
  int before;
};

// A contiguous array, or the transpose of one.
template <class T>
struct Array {
  std::vector<T> values;
  std::vector<int64_t> sizes, strides;
  Array(std::vector<int64_t> n, bool transposed = false) : sizes(n), strides(n.size()) {
    int64_t numel = 1;
    for (size_t k = 0; k < n.size(); ++k) {
      const size_t d = transposed ? k : n.size() - 1 - k;
      strides[d] = numel;
      numel *= n[d];
    }
    values.resize(numel);
  }
  operator Strided() { return {values.data(), sizes, strides}; }
  operator ConstStrided() const { return {values.data(), sizes, strides}; }
  T& operator()(int64_t i, int64_t j) { return values[i * strides[0] + j * strides[1]]; }
};

template <class T>
void fill(Array<T>& a, uint32_t seed, int bound = 1000) {
  std::mt19937 random(seed);
  for (T& v : a.values) v = static_cast<T>(static_cast<float>(random() % bound));
}

template <class E>
std::string message_of(lamina::ErrorKind kind, E&& call) {
  try {
    call();
  } catch (const lamina::Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing raised";
  return "";
}

TEST(Gather, AgainstLoops) {
  for (int threads : {1, 3})
    for (int dim : {0, 1})
      for (bool transposed : {false, true}) {
        ThreadsGuard guard(threads);
        Array<float> self({60, 70}, transposed), out({300, 50});
        Array<int64_t> index({300, 50}, !transposed);
        if (dim == 1) out = Array<float>({50, 300}), index = Array<int64_t>({50, 300}, !transposed);
        fill(self, 1);
        fill(index, 2, dim == 0 ? 60 : 70);
        cpu::gather(out, self, dim, index, 4);
        for (int64_t i = 0; i < out.sizes[0]; ++i)
          for (int64_t j = 0; j < out.sizes[1]; ++j)
            ASSERT_EQ(out(i, j), dim == 0 ? self(index(i, j), j) : self(i, index(i, j)));
      }
}

TEST(Scatter, LastWinsAndSumsAreInOrder) {
  for (int dim : {0, 1})
    for (auto reduction : {-1, 0, 1, 2, 3, 4}) {
      Array<float> first({1, 1});
      for (int threads : {1, 2, 7}) {
        ThreadsGuard guard(threads);
        Array<float> self({40, 90}, true), expected({40, 90}, true), src({40, 90}),
            counts({40, 90});
        Array<int64_t> index({40, 90});
        fill(self, 1, 5);
        fill(src, 2);
        fill(index, 3, 40);
        expected.values = self.values;
        counts.values.assign(counts.values.size(), 1);
        for (int64_t i = 0; i < 40; ++i)
          for (int64_t j = 0; j < 90; ++j) {
            float& e = dim == 0 ? expected(index(i, j), j) : expected(i, index(i, j));
            float& c = dim == 0 ? counts(index(i, j), j) : counts(i, index(i, j));
            const float v = src(i, j);
            ++c;
            e = reduction == -1  ? v
                : reduction == 0 ? e + v
                : reduction == 1 ? e * v
                : reduction == 2 ? std::max(e, v)
                : reduction == 3 ? std::min(e, v)
                                 : e + v;
          }
        if (reduction == -1)
          cpu::scatter(self, dim, index, src, 4);
        else
          cpu::scatter_reduce(self, dim, index, src, ScalarType::Float32,
                              static_cast<cpu::Reduction>(reduction));
        for (int64_t i = 0; i < 40; ++i)
          for (int64_t j = 0; j < 90; ++j)
            ASSERT_EQ(self(i, j), reduction == 4 ? expected(i, j) / counts(i, j) : expected(i, j));
      }
    }
}

TEST(Scatter, WithoutSelf) {
  Array<double> self({4}), src({3});
  Array<int64_t> index({3});
  index.values = {1, 1, 3};
  src.values = {2, 4, 7};
  const auto run = [&](cpu::Reduction r) {
    self.values = {10, 20, 30, 40};
    cpu::scatter_reduce(self, 0, index, src, ScalarType::Float64, r, false);
    return self.values;
  };
  EXPECT_EQ(run(cpu::Reduction::Sum), (std::vector<double>{10, 6, 30, 7}));
  EXPECT_EQ(run(cpu::Reduction::Mean), (std::vector<double>{10, 3, 30, 7}));
  EXPECT_EQ(run(cpu::Reduction::Amin), (std::vector<double>{10, 2, 30, 7}));
  EXPECT_EQ(run(cpu::Reduction::Amax), (std::vector<double>{10, 4, 30, 7}));
  EXPECT_EQ(run(cpu::Reduction::Prod), (std::vector<double>{10, 8, 30, 7}));
  src.values[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(run(cpu::Reduction::Amax)[1]));
  cpu::scatter_value(self, 0, index, 5, ScalarType::Float64);
  EXPECT_EQ(self.values, (std::vector<double>{10, 5, 30, 5}));
}

TEST(Index, AlongOneDimension) {
  Array<int32_t> self({500, 40}), out({700, 40});
  Array<int64_t> index({700});
  fill(self, 1);
  fill(index, 2, 500);
  cpu::index_select(out, self, 0, index, 4);
  for (int64_t i = 0; i < 700; ++i)
    for (int64_t j = 0; j < 40; ++j) ASSERT_EQ(out(i, j), self(index.values[i], j));

  Array<int32_t> sums({500, 40}), expected({500, 40});
  cpu::index_add(sums, 0, index, out, 3, ScalarType::Int32);
  for (int64_t i = 0; i < 700; ++i)
    for (int64_t j = 0; j < 40; ++j) expected(index.values[i], j) += 3 * out(i, j);
  EXPECT_EQ(sums.values, expected.values);
  cpu::index_copy(sums, 0, index, out, 4);
  for (int64_t i = 0; i < 700; ++i)
    for (int64_t j = 0; j < 40; ++j) ASSERT_EQ(sums(index.values[i], j), self(index.values[i], j));
  index.values.assign(700, -1);
  cpu::index_fill(sums, 0, index, 9, ScalarType::Int32);
  EXPECT_EQ(sums(499, 39), 9);

  Array<int32_t> taken({3});
  Array<int64_t> positions({3});
  positions.values = {0, 41, -1};
  cpu::take(taken, self, positions, 4);
  EXPECT_EQ(taken.values, (std::vector<int32_t>{self(0, 0), self(1, 1), self(499, 39)}));
}

TEST(Index, EveryIndexIsChecked) {
  Array<float> self({3, 4}), src({2, 4});
  Array<int64_t> index({2, 4}), one({2});
  for (int64_t bad : {int64_t{3}, int64_t{5}, int64_t{-1}, std::numeric_limits<int64_t>::min(),
                      std::numeric_limits<int64_t>::max()}) {
    index.values[5] = bad;
    one.values[1] = bad;
    const std::string expected =
        "index " + std::to_string(bad) + " is out of bounds for dimension 0 with size 3";
    using Kind = lamina::ErrorKind;
    EXPECT_EQ(message_of(Kind::Runtime, [&] { cpu::gather(src, self, 0, index, 4); }), expected);
    EXPECT_EQ(message_of(Kind::Runtime, [&] { cpu::scatter(self, 0, index, src, 4); }), expected);
    EXPECT_EQ(message_of(Kind::Runtime,
                         [&] { cpu::scatter_value(self, 0, index, 1, ScalarType::Float32); }),
              expected);
    EXPECT_EQ(message_of(Kind::Runtime,
                         [&] { cpu::scatter_add(self, 0, index, src, ScalarType::Float32); }),
              expected);
    EXPECT_EQ(message_of(Kind::Runtime,
                         [&] { cpu::index_add(self, 0, one, src, 1, ScalarType::Float32); }),
              expected);
    message_of(Kind::Index, [&] { cpu::index_select(src, self, 0, one, 4); });
    message_of(Kind::Index, [&] { cpu::index_copy(self, 0, one, src, 4); });
    if (bad != -1)
      message_of(Kind::Index, [&] { cpu::index_fill(self, 0, one, 1, ScalarType::Float32); });
  }
}

TEST(Index, Advanced) {
  Array<float> self({30, 20, 10});
  fill(self, 1);
  // self[rows, :, cols] with rows (5, 1) and cols (7): the result is (5, 7, 20).
  const std::vector<int64_t> rows{0, -1, 5, 29, -30}, cols{0, 1, 2, 9, -1, -10, 3};
  std::vector<float> out(5 * 7 * 20);
  const std::vector<int64_t> sizes{5, 7, 20}, strides{140, 20, 1}, self_strides{0, 0, 10};
  const std::vector<int64_t> row_strides{1, 0, 0}, col_strides{0, 1, 0}, indexed_sizes{30, 10},
      indexed_strides{200, 1};
  const int64_t* data[] = {rows.data(), cols.data()};
  const int64_t* index_strides[] = {row_strides.data(), col_strides.data()};
  const int dims[] = {0, 2};
  const cpu::IndexArrays indices{data, index_strides, indexed_sizes, indexed_strides, dims};
  cpu::index_get({out.data(), sizes, strides}, {self.values.data(), sizes, self_strides}, indices,
                 4);
  const auto at = [&](int r, int k, int c) -> float& {
    return self.values[((rows[r] + 30) % 30) * 200 + k * 10 + (cols[c] + 10) % 10];
  };
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 7; ++c)
      for (int k = 0; k < 20; ++k) ASSERT_EQ(out[r * 140 + c * 20 + k], at(r, k, c));

  std::vector<float> ones(out.size(), 1);
  auto expected = self;
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 7; ++c)
      for (int k = 0; k < 20; ++k)
        expected.values[((rows[r] + 30) % 30) * 200 + k * 10 + (cols[c] + 10) % 10] += 1;
  cpu::index_put({self.values.data(), sizes, self_strides}, indices, {ones.data(), sizes, strides},
                 ScalarType::Float32, true);
  EXPECT_EQ(self.values, expected.values);
  cpu::index_put({self.values.data(), sizes, self_strides}, indices, {ones.data(), sizes, strides},
                 ScalarType::Float32, false);
  EXPECT_EQ(at(0, 0, 0), 1);

  const std::vector<int64_t> bad{0, 1, 2, 3, 10, 5, 6};
  const int64_t* bad_data[] = {rows.data(), bad.data()};
  const cpu::IndexArrays wrong{bad_data, index_strides, indexed_sizes, indexed_strides, dims};
  const auto before = self.values;
  const auto put = [&] {
    cpu::index_put({self.values.data(), sizes, self_strides}, wrong, {out.data(), sizes, strides},
                   ScalarType::Float32, false);
  };
  EXPECT_EQ(message_of(lamina::ErrorKind::Index, put),
            "index 10 is out of bounds for dimension 2 with size 10");
  EXPECT_EQ(self.values, before);
}

TEST(Masks, SelectScatterFillNonzero) {
  for (int threads : {1, 2, 7})
    for (bool transposed : {false, true}) {
      ThreadsGuard guard(threads);
      Array<float> self({401, 307}, transposed);
      Array<uint8_t> mask({401, 307});
      fill(self, 1);
      fill(mask, 2, 2);
      std::vector<float> expected, out;
      std::vector<int64_t> coordinates;
      for (int64_t i = 0; i < 401; ++i)
        for (int64_t j = 0; j < 307; ++j)
          if (mask(i, j)) {
            expected.push_back(self(i, j));
            coordinates.push_back(i);
            coordinates.push_back(j);
          }
      const int64_t count = cpu::count_nonzero(mask, ScalarType::Bool);
      ASSERT_EQ(count, static_cast<int64_t>(expected.size()));
      out.resize(count);
      cpu::masked_select(out.data(), count, self, mask, 4);
      ASSERT_EQ(out, expected);
      std::vector<int64_t> found(2 * count);
      cpu::nonzero(found.data(), count, 2, 1, mask, ScalarType::Bool);
      ASSERT_EQ(found, coordinates);
      std::vector<float> numbers(count);
      for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i);
      cpu::masked_scatter(self, mask, numbers.data(), count, 4);
      cpu::masked_select(out.data(), count, self, mask, 4);
      ASSERT_EQ(out, numbers);
      cpu::masked_fill(self, mask, -3.5, ScalarType::Float32);
      for (int64_t i = 0; i < 401; ++i)
        for (int64_t j = 0; j < 307; ++j) ASSERT_EQ(self(i, j) == -3.5f, mask(i, j) != 0);
      EXPECT_THROW(cpu::masked_scatter(self, mask, numbers.data(), count - 1, 4), lamina::Error);
      EXPECT_THROW(cpu::masked_select(out.data(), count - 1, self, mask, 4), lamina::Error);
    }
}

TEST(Masks, NonzeroOfFloats) {
  Array<float> v({4});
  v.values = {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), 1};
  EXPECT_EQ(cpu::count_nonzero(v, ScalarType::Float32), 2);
  const cpu::ConstStrided scalar(v.values.data() + 3, {}, {});
  EXPECT_EQ(cpu::count_nonzero(scalar, ScalarType::Float32), 1);
  cpu::nonzero(nullptr, 1, 0, 1, scalar, ScalarType::Float32);  // one row of no coordinates
}

TEST(Cat, AlongEitherDimension) {
  Array<float> a({3, 4}), b({3, 2}, true), out({3, 6});
  fill(a, 1);
  fill(b, 2);
  const ConstStrided inputs[] = {a, b};
  cpu::cat(out, inputs, 1, 4);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 6; ++j) EXPECT_EQ(out(i, j), j < 4 ? a(i, j) : b(i, j - 4));
}

}  // namespace

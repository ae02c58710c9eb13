// Reductions, scans and softmax against plain loops in double; bits under several thread counts.
#include <gtest/gtest.h>

#include <algorithm>

#include "lamina/core/error.h"
#include "lamina/queue/parallel.h"
#include "tests/cpp/tile_testing.h"

namespace lamina::tile {
namespace {

using testing::Array;
using testing::at_every_level;

std::vector<int64_t> kept_sizes(const std::vector<int64_t>& sizes,
                                const std::vector<bool>& reduced) {
  std::vector<int64_t> out = sizes;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (reduced[d]) out[d] = 1;
  return out;
}

struct Result {
  Array out, index;
};
Result run_reduce(Reduce kind, Array& in, const std::vector<bool>& reduced, ScalarType accumulate,
                  ScalarType out_type, double correction = 1) {
  Result r{Array(out_type, kept_sizes(in.sizes, reduced)),
           Array(ScalarType::Int64, kept_sizes(in.sizes, reduced))};
  bool flags[kMaxDims] = {};
  std::copy(reduced.begin(), reduced.end(), flags);
  const bool indexed = kind == Reduce::max_index || kind == Reduce::min_index;
  reduce({.kind = kind,
          .accumulate = accumulate,
          .ndim = static_cast<int>(in.sizes.size()),
          .sizes = in.sizes.data(),
          .reduced = flags,
          .input = in.operand(),
          .out = r.out.operand(),
          .out_index = indexed ? r.index.operand() : Operand{},
          .correction = correction});
  return r;
}

// The values that fold into each output, in the order of the reduced dimensions.
std::vector<std::vector<double>> groups(Array& in, const std::vector<bool>& reduced) {
  const auto kept = kept_sizes(in.sizes, reduced);
  int64_t count = 1;
  for (int64_t s : kept) count *= s;
  std::vector<std::vector<double>> g(static_cast<size_t>(count));
  for (int64_t i = 0; i < in.numel(); ++i) {
    int64_t rest = i, k = 0, scale = 1;
    for (size_t d = in.sizes.size(); d-- > 0;) {
      const int64_t index = rest % in.sizes[d];
      rest /= in.sizes[d];
      if (!reduced[d]) k += index * scale;
      scale *= kept[d];
    }
    g[static_cast<size_t>(k)].push_back(in.get(i).to_double());
  }
  return g;
}

TEST(TileReduce, EveryKindLayoutAndType) {
  at_every_level([] {
    const std::vector<std::vector<int64_t>> shapes = {
        {1}, {1000}, {70000}, {40, 1500}, {1500, 40}, {5, 6, 700}, {20, 31, 17}, {3000, 9}};
    uint64_t seed = 1;
    for (const auto& shape : shapes)
      for (ScalarType t : {ScalarType::Float32, ScalarType::Float64, ScalarType::BFloat16,
                           ScalarType::Int32, ScalarType::UInt8})
        for (unsigned mask = 1; mask < 1u << shape.size(); ++mask)
          for (int layout = 0; layout < 2; ++layout) {
            std::vector<int> order(shape.size());
            std::iota(order.begin(), order.end(), 0);
            if (layout) std::reverse(order.begin(), order.end());
            Array in(t, shape, order, 1 + layout);
            in.randomize(seed++);
            std::vector<bool> reduced(shape.size());
            for (size_t d = 0; d < shape.size(); ++d) reduced[d] = mask >> d & 1;
            const auto values = groups(in, reduced);
            const bool floating = is_floating(t);
            const ScalarType acc = compute_type(t);
            const ScalarType sum_type = floating ? acc : ScalarType::Int64;
            const double eps = acc == ScalarType::Float64 ? 1e-13 : 1e-6;
            const auto near = [&](Array&& got, auto&& expected, double scale_by) {
              for (size_t k = 0; k < values.size(); ++k) {
                const double e = expected(values[k]);
                ASSERT_NEAR(got.get(static_cast<int64_t>(k)).to_double(), e,
                            floating ? eps * (scale_by + std::fabs(e)) : 0)
                    << k << ' ' << name(t) << " mask " << mask << " layout " << layout;
              }
            };
            const auto sum_of = [](const std::vector<double>& v) {
              return std::accumulate(v.begin(), v.end(), 0.0);
            };
            const double spread = 8 * std::sqrt(static_cast<double>(values[0].size()));
            near(run_reduce(Reduce::sum, in, reduced, acc, sum_type).out, sum_of, spread);
            near(
                run_reduce(Reduce::amax, in, reduced, acc, t).out,
                [](auto& v) { return *std::max_element(v.begin(), v.end()); }, 0);
            near(
                run_reduce(Reduce::amin, in, reduced, acc, t).out,
                [](auto& v) { return *std::min_element(v.begin(), v.end()); }, 0);
            auto best = run_reduce(Reduce::max_index, in, reduced, acc, t);
            auto least = run_reduce(Reduce::argmin, in, reduced, acc, ScalarType::Int64);
            for (size_t k = 0; k < values.size(); ++k) {
              const auto& v = values[k];
              const auto i = static_cast<int64_t>(k);
              ASSERT_EQ(best.index.get(i).to_int(),
                        std::max_element(v.begin(), v.end()) - v.begin());
              ASSERT_EQ(best.out.get(i).to_double(), *std::max_element(v.begin(), v.end()));
              ASSERT_EQ(least.out.get(i).to_int(),
                        std::min_element(v.begin(), v.end()) - v.begin());
            }
            near(
                run_reduce(Reduce::count_nonzero, in, reduced, acc, ScalarType::Int64).out,
                [](auto& v) {
                  return static_cast<double>(
                      std::count_if(v.begin(), v.end(), [](double x) { return x != 0; }));
                },
                0);
            near(
                run_reduce(Reduce::any, in, reduced, acc, ScalarType::Bool).out,
                [](auto& v) {
                  return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
                },
                0);
            near(
                run_reduce(Reduce::all, in, reduced, acc, ScalarType::Bool).out,
                [](auto& v) {
                  return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; });
                },
                0);
            if (!floating) continue;
            near(
                run_reduce(Reduce::mean, in, reduced, acc, acc).out,
                [&](auto& v) { return sum_of(v) / static_cast<double>(v.size()); }, 1);
            near(
                run_reduce(Reduce::norm2, in, reduced, acc, acc).out,
                [](auto& v) {
                  return std::sqrt(std::accumulate(v.begin(), v.end(), 0.0,
                                                   [](double s, double x) { return s + x * x; }));
                },
                0);
            near(
                run_reduce(Reduce::logsumexp, in, reduced, acc, acc).out,
                [](auto& v) {
                  const double top = *std::max_element(v.begin(), v.end());
                  return top +
                         std::log(std::accumulate(v.begin(), v.end(), 0.0, [&](double s, double x) {
                           return s + std::exp(x - top);
                         }));
                },
                1);
            if (values[0].size() < 2) continue;
            near(
                run_reduce(Reduce::var, in, reduced, acc, acc).out,
                [&](auto& v) {
                  const double m = sum_of(v) / static_cast<double>(v.size());
                  return std::accumulate(
                             v.begin(), v.end(), 0.0,
                             [&](double s, double x) { return s + (x - m) * (x - m); }) /
                         static_cast<double>(v.size() - 1);
                },
                1);
          }
  });
}

TEST(TileReduce, NanAndEmpty) {
  at_every_level([] {
    Array x(ScalarType::Float32, {3000});
    x.randomize(4);
    x.set(2000, Scalar(double(NAN)));
    x.set(2500, Scalar(double(NAN)));
    const std::vector<bool> all = {true};
    EXPECT_TRUE(
        std::isnan(run_reduce(Reduce::amax, x, all, x.dtype, x.dtype).out.get(0).to_double()));
    EXPECT_TRUE(
        std::isnan(run_reduce(Reduce::amin, x, all, x.dtype, x.dtype).out.get(0).to_double()));
    EXPECT_EQ(run_reduce(Reduce::argmax, x, all, x.dtype, ScalarType::Int64).out.get(0).to_int(),
              2000);
    EXPECT_EQ(run_reduce(Reduce::argmin, x, all, x.dtype, ScalarType::Int64).out.get(0).to_int(),
              2000);
    EXPECT_TRUE(
        std::isfinite(run_reduce(Reduce::nansum, x, all, x.dtype, x.dtype).out.get(0).to_double()));
    Array same(ScalarType::Int32, {5000});
    EXPECT_EQ(
        run_reduce(Reduce::argmax, same, all, same.dtype, ScalarType::Int64).out.get(0).to_int(),
        0);

    Array none(ScalarType::Float32, {0, 3});
    const std::vector<bool> first = {true, false};
    EXPECT_EQ(run_reduce(Reduce::sum, none, first, none.dtype, none.dtype).out.get(2).to_double(),
              0);
    EXPECT_EQ(run_reduce(Reduce::prod, none, first, none.dtype, none.dtype).out.get(2).to_double(),
              1);
    EXPECT_TRUE(std::isnan(
        run_reduce(Reduce::mean, none, first, none.dtype, none.dtype).out.get(0).to_double()));
    EXPECT_TRUE(
        run_reduce(Reduce::all, none, first, none.dtype, ScalarType::Bool).out.get(0).to_bool());
    EXPECT_EQ(
        run_reduce(Reduce::logsumexp, none, first, none.dtype, none.dtype).out.get(0).to_double(),
        -INFINITY);
    try {
      run_reduce(Reduce::amax, none, first, none.dtype, none.dtype);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Index);
    }
    Array one(ScalarType::Float64, {1});
    EXPECT_TRUE(
        std::isnan(run_reduce(Reduce::var, one, all, one.dtype, one.dtype).out.get(0).to_double()));
  });
}

TEST(TileReduce, ErrorGrowsSlowly) {
  Array x(ScalarType::Float32, {4'000'000});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, Scalar(0.1));
  const double sum = run_reduce(Reduce::sum, x, {true}, x.dtype, x.dtype).out.get(0).to_double();
  EXPECT_NEAR(sum, 4e6 * static_cast<double>(0.1f), 0.5);
  const double var =
      run_reduce(Reduce::var, x, {true}, x.dtype, ScalarType::Float64).out.get(0).to_double();
  EXPECT_NEAR(var, 0, 1e-15);
}

TEST(TileReduce, IntegerSumsDoNotOverflowTheirType) {
  Array x(ScalarType::UInt8, {100000});
  for (int64_t i = 0; i < x.numel(); ++i) x.set(i, Scalar(200));
  EXPECT_EQ(run_reduce(Reduce::sum, x, {true}, x.dtype, ScalarType::Int64).out.get(0).to_int(),
            20'000'000);
}

TEST(TileReduce, SameBitsForAnyNumberOfThreadsAndLevel) {
  const int before = queue::get_num_threads();
  std::vector<unsigned char> first[4];
  at_every_level([&] {
    for (int threads : {1, 2, 7}) {
      queue::set_num_threads(threads);
      Array x(ScalarType::Float32, {600, 1111});
      x.randomize(1);
      int i = 0;
      for (const std::vector<bool>& reduced :
           {std::vector<bool>{true, true}, {true, false}, {false, true}}) {
        auto sum = run_reduce(Reduce::sum, x, reduced, x.dtype, x.dtype).out.memory;
        if (first[i].empty()) first[i] = sum;
        EXPECT_EQ(first[i], sum) << i << ' ' << threads;
        ++i;
      }
      auto var = run_reduce(Reduce::var, x, {true, true}, x.dtype, x.dtype).out.memory;
      if (first[3].empty()) first[3] = var;
      EXPECT_EQ(first[3], var) << threads;
    }
  });
  queue::set_num_threads(before);
}

TEST(TileScan, SumsProductsAndExtremes) {
  at_every_level([] {
    for (ScalarType t :
         {ScalarType::Float32, ScalarType::Float64, ScalarType::BFloat16, ScalarType::Int32})
      for (const auto& shape :
           std::vector<std::vector<int64_t>>{{500}, {33, 150}, {150, 33}, {4, 70, 6}})
        for (size_t dim = 0; dim < shape.size(); ++dim) {
          Array in(t, shape);
          in.randomize(9);
          const ScalarType acc = compute_type(t);
          Array out(is_integral(t) ? ScalarType::Int64 : acc, shape), top(t, shape),
              where(ScalarType::Int64, shape);
          const auto call = [&](Scan kind, Array& o, bool indexed) {
            scan({.kind = kind,
                  .accumulate = acc,
                  .ndim = static_cast<int>(shape.size()),
                  .sizes = shape.data(),
                  .dim = static_cast<int>(dim),
                  .input = in.operand(),
                  .out = o.operand(),
                  .out_index = indexed ? where.operand() : Operand{}});
          };
          call(Scan::cumsum, out, false);
          call(Scan::cummax, top, true);
          int64_t inner = 1;
          for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
          for (int64_t i = 0; i < in.numel(); ++i) {
            const int64_t position = i / inner % shape[dim];
            double sum = 0, best = -INFINITY;
            int64_t at = 0;
            for (int64_t k = 0; k <= position; ++k) {
              const double v = in.get(i - (position - k) * inner).to_double();
              sum += v;
              if (v >= best) {
                best = v;
                at = k;
              }
            }
            ASSERT_NEAR(out.get(i).to_double(), sum,
                        is_integral(t)               ? 0
                        : acc == ScalarType::Float64 ? 1e-12
                                                     : 1e-5 * (1 + std::fabs(sum)));
            ASSERT_EQ(top.get(i).to_double(), best);
            ASSERT_EQ(where.get(i).to_int(), at);
          }
        }
  });
}

TEST(TileSoftmax, ForwardAndBackward) {
  at_every_level([] {
    for (ScalarType t : {ScalarType::Float32, ScalarType::Float64, ScalarType::Float16})
      for (const auto& shape : std::vector<std::vector<int64_t>>{
               {7}, {33, 150}, {3, 2500}, {4, 70, 6}, {37, 32}, {1, 1}})
        for (size_t dim = 0; dim < shape.size(); ++dim) {
          const ScalarType acc = compute_type(t);
          const double eps = t == ScalarType::Float64   ? 1e-13
                             : t == ScalarType::Float32 ? 5e-6
                                                        : 4e-3;
          Array x(t, shape), g(t, shape), y(t, shape), l(t, shape), dx(t, shape), dl(t, shape);
          x.randomize(1);
          g.randomize(2);
          const auto call = [&](Softmax kind, Array& out, Array& a, Array* b) {
            softmax({.kind = kind,
                     .accumulate = acc,
                     .ndim = static_cast<int>(shape.size()),
                     .sizes = shape.data(),
                     .dim = static_cast<int>(dim),
                     .out = out.operand(),
                     .in0 = a.operand(),
                     .in1 = b ? b->operand() : Operand{}});
          };
          call(Softmax::softmax, y, x, nullptr);
          call(Softmax::log_softmax, l, x, nullptr);
          call(Softmax::softmax_backward, dx, g, &y);
          call(Softmax::log_softmax_backward, dl, g, &l);
          int64_t inner = 1;
          for (size_t d = dim + 1; d < shape.size(); ++d) inner *= shape[d];
          for (int64_t i = 0; i < x.numel(); ++i) {
            if (i / inner % shape[dim] != 0) continue;
            const auto at = [&](Array& a, int64_t k) { return a.get(i + k * inner).to_double(); };
            double top = -INFINITY, sum = 0, gy = 0, gs = 0;
            for (int64_t k = 0; k < shape[dim]; ++k) top = std::max(top, at(x, k));
            for (int64_t k = 0; k < shape[dim]; ++k) {
              sum += std::exp(at(x, k) - top);
              gy += at(g, k) * at(y, k);
              gs += at(g, k);
            }
            for (int64_t k = 0; k < shape[dim]; ++k) {
              ASSERT_NEAR(at(y, k), std::exp(at(x, k) - top) / sum, eps);
              ASSERT_NEAR(at(l, k), at(x, k) - top - std::log(sum), eps * 20);
              ASSERT_NEAR(at(dx, k), at(y, k) * (at(g, k) - gy), eps * 30);
              ASSERT_NEAR(at(dl, k), at(g, k) - std::exp(at(l, k)) * gs,
                          eps * 100 + eps * std::fabs(gs));
            }
          }
        }
    Array x(ScalarType::Float32, {2, 9}), y(ScalarType::Float32, {2, 9});
    for (int64_t i = 0; i < 9; ++i) x.set(i, Scalar(-double(INFINITY)));
    softmax({.kind = Softmax::softmax,
             .ndim = 2,
             .sizes = x.sizes.data(),
             .dim = 1,
             .out = y.operand(),
             .in0 = x.operand(),
             .in1 = {}});
    EXPECT_TRUE(std::isnan(y.get(8).to_double()));
    EXPECT_FLOAT_EQ(y.get(9).to_double(), 1.0 / 9);
  });
}

}  // namespace
}  // namespace lamina::tile

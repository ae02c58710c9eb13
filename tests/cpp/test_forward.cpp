#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "lamina/autograd/function.h"
#include "lamina/lamina.h"

using namespace lamina;
namespace fw = lamina::autograd::forward;

namespace {

Tensor t(std::vector<double> v) { return from_values(v, {static_cast<int64_t>(v.size())}); }
std::vector<double> values(const Tensor& x) {
  if (!x.defined()) return {};
  const NoGrad off;
  const Tensor c = ops::contiguous(ops::resolve_neg(ops::detach(x)));
  return {c.data_as<double>(), c.data_as<double>() + c.numel()};
}
using V = std::vector<double>;

TEST(Forward, TangentsFollowValues) {
  const DualLevel level;
  const Tensor x = level.make_dual(t({1, 2}), t({1, -1}));
  EXPECT_EQ(values(level.unpack_dual(x * x).tangent), V({2, -4}));
  EXPECT_EQ(values(level.unpack_dual(sum(x * x)).tangent), V({-2}));
  EXPECT_FALSE(level.unpack_dual(x > Scalar(0)).tangent.defined());
  EXPECT_FALSE(level.unpack_dual(t({1})).tangent.defined());
}

TEST(Forward, LevelsNestAndEndInOrder) {
  EXPECT_EQ(fw::num_levels(), 0);
  EXPECT_THROW(fw::leave_level(0), Error);
  {
    const DualLevel outer;
    const Tensor a = outer.make_dual(t({2}), t({1}));
    {
      const DualLevel inner;
      EXPECT_EQ(inner.index(), 1);
      const Tensor b = inner.make_dual(a, t({1}));
      const Tensor first = inner.unpack_dual(b * b * b).tangent;
      EXPECT_EQ(values(first), V({12}));
      EXPECT_EQ(values(outer.unpack_dual(first).tangent), V({12}));
      EXPECT_THROW(fw::leave_level(0), Error);
    }
    EXPECT_EQ(values(outer.unpack_dual(a * a).tangent), V({4}));
  }
  EXPECT_EQ(fw::num_levels(), 0);
  EXPECT_EQ(fw::t_visible, 0u);
}

TEST(Forward, EndFreesTangents) {
  const Tensor direction = t({1, 1});
  Tensor kept;
  {
    const DualLevel level;
    kept = level.make_dual(t({1, 2}), direction);
    EXPECT_EQ(direction.impl()->use_count(), 2u);
  }
  EXPECT_EQ(direction.impl()->use_count(), 1u);
}

TEST(Forward, OverAndUnderReverse) {
  const Tensor w = requires_grad(t({0.5, 2}));
  const DualLevel level;
  const Tensor x = level.make_dual(w, t({1, 1}));
  const Tensor y = sum(x * x * x);
  const auto g = autograd::grad({&y, 1}, {&w, 1}, {}, true, false, false);
  EXPECT_EQ(values(level.unpack_dual(g[0]).tangent), V({3, 12}));
  const Tensor slope = level.unpack_dual(y).tangent;
  const auto h = autograd::grad({&slope, 1}, {&w, 1}, {}, false, false, false);
  EXPECT_EQ(values(h[0]), V({3, 12}));
}

TEST(Forward, ViewsAndWrites) {
  const Tensor z = zeros({2, 2}, ScalarType::Float64);
  const Tensor row = select(z, 0, 1);
  const DualLevel level;
  copy_(row, level.make_dual(t({1, 2}), t({3, 4})));
  EXPECT_EQ(values(level.unpack_dual(z).tangent), V({0, 0, 3, 4}));
  mul_(select(z, 1, 0), Scalar(5));
  EXPECT_EQ(values(level.unpack_dual(row).tangent), V({15, 4}));
  zero_(z);
  EXPECT_EQ(values(level.unpack_dual(row).tangent), V({0, 0}));
}

TEST(Forward, Switch) {
  const DualLevel level;
  const Tensor x = level.make_dual(t({1}), t({1}));
  fw::set_enabled(false);
  EXPECT_FALSE(level.unpack_dual(x * x).tangent.defined());
  fw::set_enabled(true);
  EXPECT_TRUE(level.unpack_dual(x * x).tangent.defined());
}

TEST(Forward, BadDuals) {
  EXPECT_THROW(fw::make_dual(t({1}), t({1}), 0), Error);
  const DualLevel level;
  EXPECT_THROW(level.make_dual(t({1}), t({1, 2})), Error);
  EXPECT_THROW(level.make_dual(ones({1}, ScalarType::Int64), ones({1}, ScalarType::Int64)), Error);
  const Tensor x = level.make_dual(t({1}), t({1}));
  EXPECT_THROW(level.make_dual(x, t({1})), Error);
  EXPECT_THROW(fw::make_dual(x, t({1}), 1), Error);
  Tensor out = empty({1}, ScalarType::Float64);
  EXPECT_THROW(mul_out(out, x, x), Error);
}

struct Square : autograd::Function<Square> {
  static Tensor forward(autograd::FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& ctx,
                                      const std::vector<Tensor>& grads) {
    return {grads[0] * ctx.saved()[0] * Scalar(2)};
  }
  static std::vector<Tensor> jvp(autograd::FunctionContext& ctx, const std::vector<Tensor>& t) {
    return {t[0] * ctx.saved()[0] * Scalar(2)};
  }
};
struct NoRule : autograd::Function<NoRule> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& x) { return x * x; }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& g) {
    return g;
  }
};

TEST(Forward, CustomFunctions) {
  const Tensor w = requires_grad(t({3}));
  const DualLevel outer;
  const Tensor a = outer.make_dual(w, t({1}));
  {
    const DualLevel inner;
    const Tensor b = inner.make_dual(a, t({1}));
    const Tensor y = Square::apply(b);
    const Tensor first = inner.unpack_dual(y).tangent;
    EXPECT_EQ(values(first), V({6}));
    EXPECT_EQ(values(outer.unpack_dual(first).tangent), V({2}));
    const auto g = autograd::grad({&first, 1}, {&w, 1}, {}, true, false, false);
    EXPECT_EQ(values(g[0]), V({2}));
  }
  EXPECT_THROW(NoRule::apply(a), Error);
  EXPECT_EQ(values(NoRule::apply(t({2}))), V({4}));
}

TEST(Forward, ThreadsShareTensorsButNotLevels) {
  const Tensor x = t({1, 2, 3});
  const Tensor w = requires_grad(t({1, 1, 1}));
  std::vector<std::thread> threads;
  for (int k = 0; k < 8; ++k)
    threads.emplace_back([&, k] {
      for (int i = 0; i < 50; ++i) {
        const DualLevel level;
        const Tensor d = level.make_dual(x, ops::full({3}, Scalar(k), ScalarType::Float64));
        const Tensor y = sum(exp(d * w) * w);
        const auto g = autograd::grad({&y, 1}, {&w, 1}, {}, false, false, false);
        ASSERT_TRUE(level.unpack_dual(g[0]).tangent.defined());
        ASSERT_EQ(values(level.unpack_dual(d * Scalar(2)).tangent)[0], 2.0 * k);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Forward, DualsOutliveTheirThread) {
  Tensor kept;
  std::thread([&] {
    fw::enter_level();
    kept = fw::make_dual(t({1}), t({1}), 0) * Scalar(2);
  }).join();
  const DualLevel level;
  EXPECT_FALSE(level.unpack_dual(kept).tangent.defined());
}

}  // namespace

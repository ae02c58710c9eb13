#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/lamina.h"

using namespace lamina;
using autograd::Edge;
using autograd::Node;

namespace {

Tensor leaf(std::vector<float> v) {
  return requires_grad(from_values(v, {static_cast<int64_t>(v.size())}));
}
std::vector<float> values(const Tensor& t) {
  const NoGrad off;
  const Tensor c = ops::contiguous(t);
  return {c.data_as<float>(), c.data_as<float>() + c.numel()};
}
std::vector<float> grad_of(const Tensor& t) {
  const Tensor g = autograd::grad(t);
  return g.defined() ? values(g) : std::vector<float>{};
}
template <class F>
std::string message_of(F f, ErrorKind kind = ErrorKind::Runtime) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
void run(const Tensor& root, bool retain = false, bool create = false) {
  autograd::backward({&root, 1}, {}, retain, create);
}

// A node of the tests: passes its gradient on to every edge and writes its number down.
struct Probe final : Node {
  Probe(std::vector<int>* log, int number) : log(log), number(number) {}
  const char* name() const override { return "Probe"; }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override {
    check_not_released();
    log->push_back(number);
    for (Tensor& r : results) r = grads[0];
  }
  std::vector<int>* log;
  int number;
};

TEST(Nodes, NamesEdgesAndAccumulators) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4}), c = from_values<float>({5, 6}, {2});
  const Tensor product = a * b;
  const auto node = autograd::grad_fn(product);
  ASSERT_TRUE(node);
  EXPECT_STREQ(node->name(), "MulBackward0");
  ASSERT_EQ(node->edges().size(), 2u);
  EXPECT_STREQ(node->edges()[0].node->name(), "AccumulateGrad");
  EXPECT_EQ(node->edges()[0].node, autograd::accumulator_of(a));  // one for each leaf
  EXPECT_FALSE(autograd::is_leaf(product));
  EXPECT_TRUE(autograd::is_leaf(a));
  const auto half = autograd::grad_fn(a * c);
  EXPECT_TRUE(half->should_compute(0));
  EXPECT_FALSE(half->should_compute(1));
  EXPECT_FALSE(autograd::grad_fn(c * c));
  const NoGrad off;
  EXPECT_FALSE(autograd::grad_fn(a * b));
}

TEST(Nodes, IntegersHaveNoHistory) {
  const Tensor a = leaf({1, 2});
  EXPECT_FALSE(ops::argmax(a).requires_grad());
  EXPECT_FALSE(ops::gt(a, 1).requires_grad());
  EXPECT_TRUE(contains(message_of([] { requires_grad(ops::zeros({2}, ScalarType::Int64)); }),
                       "floating point"));
}

TEST(Engine, SumsWhatArrivesOnSeveralWays) {
  const Tensor x = leaf({2, 3});
  run(ops::sum(x * x + x));
  EXPECT_EQ(grad_of(x), (std::vector<float>{5, 7}));
  run(ops::sum(x));
  EXPECT_EQ(grad_of(x), (std::vector<float>{6, 8}));  // gradients add up in .grad
  autograd::set_grad(x, {});
  EXPECT_FALSE(autograd::grad(x).defined());
}

TEST(Engine, RunsTheNewestReadyNodeFirst) {
  std::vector<int> log;
  const Tensor x = leaf({1});
  const auto make = [&](int number, std::vector<IntrusivePtr<Node>> next) {
    auto node = IntrusivePtr<Probe>::make(&log, number);
    for (auto& n : next) node->add_edge(n ? Edge{n, 0} : autograd::gradient_edge(x));
    node->add_output(x);
    return IntrusivePtr<Node>(node);
  };
  // 0 is the oldest; 3 feeds 1 and 2, which both feed 0.
  const auto n0 = make(0, {nullptr}), n1 = make(1, {n0}), n2 = make(2, {n0}),
             n3 = make(3, {n1, n2});
  const Tensor root = ops::clone(x);
  autograd::require_meta(root).grad_fn = n3;
  run(root);
  EXPECT_EQ(log, (std::vector<int>{3, 2, 1, 0}));
  EXPECT_EQ(grad_of(x), std::vector<float>{2});
}

TEST(Engine, RunsANodeOnceHoweverManyUse) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 60; ++i) y = y + y;  // 2^60 ways
  run(y);
  EXPECT_EQ(grad_of(x), std::vector<float>{static_cast<float>(int64_t{1} << 60)});
}

TEST(Engine, RootsMustFit) {
  const Tensor x = leaf({1, 2});
  EXPECT_TRUE(contains(message_of([&] { run(x * x); }), "scalar outputs"));
  EXPECT_TRUE(contains(message_of([] { run(ops::ones({})); }), "does not require grad"));
  const Tensor y = x * x, wrong = ops::ones({3});
  EXPECT_TRUE(contains(message_of([&] { autograd::backward({&y, 1}, {&wrong, 1}, false, false); }),
                       "shape"));
  const Tensor right = from_values<float>({1, 10}, {2});
  autograd::backward({&y, 1}, {&right, 1}, false, false);
  EXPECT_EQ(grad_of(x), (std::vector<float>{2, 40}));
}

TEST(Engine, SecondRunNeedsRetainGraph) {
  const Tensor x = leaf({3});
  const Tensor y = x * x;
  run(y, true);
  run(y);
  EXPECT_EQ(grad_of(x), std::vector<float>{12});
  EXPECT_TRUE(contains(message_of([&] { run(y); }), "retain_graph=True"));
  EXPECT_EQ(grad_of(x), std::vector<float>{12});
}

TEST(Engine, CreateGraphGivesHigherDerivatives) {
  const Tensor x = leaf({2});
  const Tensor y = x * x * x;
  const Tensor first = autograd::grad({&y, 1}, {&x, 1}, {}, true, true, false)[0];
  EXPECT_EQ(values(first), std::vector<float>{12});
  ASSERT_TRUE(first.requires_grad());
  const Tensor second = autograd::grad({&first, 1}, {&x, 1}, {}, true, true, false)[0];
  EXPECT_EQ(values(second), std::vector<float>{12});
  const Tensor third = autograd::grad({&second, 1}, {&x, 1}, {}, false, false, false)[0];
  EXPECT_EQ(values(third), std::vector<float>{6});
  EXPECT_FALSE(third.requires_grad());
  EXPECT_FALSE(autograd::grad(x).defined());  // grad() leaves .grad alone
}

TEST(Engine, GradOfInnerTensorsAndUnused) {
  const Tensor x = leaf({2}), unused = leaf({1});
  const Tensor inner = x * x;
  const Tensor y = inner * inner;
  const std::vector<Tensor> inputs{inner, x};
  const auto g = autograd::grad({&y, 1}, inputs, {}, true, false, false);
  EXPECT_EQ(values(g[0]), std::vector<float>{8});
  EXPECT_EQ(values(g[1]), std::vector<float>{32});
  EXPECT_TRUE(
      contains(message_of([&] { autograd::grad({&y, 1}, {&unused, 1}, {}, true, false, false); }),
               "allow_unused"));
  EXPECT_FALSE(autograd::grad({&y, 1}, {&unused, 1}, {}, true, false, true)[0].defined());
}

TEST(Engine, BackwardToGivenInputsOnly) {
  const Tensor a = leaf({2}), b = leaf({3});
  const Tensor y = a * b;
  autograd::backward({&y, 1}, {}, true, false, {&a, 1});
  EXPECT_EQ(grad_of(a), std::vector<float>{3});
  EXPECT_TRUE(grad_of(b).empty());
}

TEST(Engine, ThreadsShareLeaves) {
  const Tensor x = leaf({1, 1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) {
        const Tensor y = ops::sum(x * 2);
        autograd::grad({&y, 1}, {&x, 1}, {}, false, false, false);
      }
    });
  for (std::thread& t : threads) t.join();
  run(ops::sum(x));
  EXPECT_EQ(grad_of(x), (std::vector<float>{1, 1}));
}

TEST(Versions, AWriteToASavedTensorIsFound) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  const Tensor z = ops::sum(y * y);
  ops::add_(y, 1);
  const std::string message = message_of([&] { run(z); });
  EXPECT_TRUE(contains(message, "in")) << message;
  EXPECT_TRUE(contains(message, "version")) << message;
  const Tensor w = ops::sum(ops::exp(x));  // the result is what exp keeps
  run(w);
  const Tensor e = ops::exp(x);
  ops::mul_(e, 2);
  EXPECT_TRUE(contains(message_of([&] { run(ops::sum(e)); }), "version"));
  const Tensor s = x + 1;  // nothing is kept
  ops::mul_(s, 2);
  autograd::set_grad(x, {});
  run(ops::sum(s));
  EXPECT_EQ(grad_of(x), (std::vector<float>{2, 2}));
}

TEST(InPlace, LeavesAreRefused) {
  const Tensor x = leaf({1, 2});
  EXPECT_TRUE(contains(message_of([&] { ops::add_(x, 1); }), "leaf"));
  EXPECT_TRUE(contains(message_of([&] { ops::copy_(x, ops::ones({2})); }), "leaf"));
  EXPECT_EQ(values(x), (std::vector<float>{1, 2}));
  const NoGrad off;
  ops::add_(x, 1);
  EXPECT_EQ(values(x), (std::vector<float>{2, 3}));
}

TEST(InPlace, RebasesHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  ops::mul_(y, x);  // 2 x^2; y itself is not needed for the gradient of x * 2
  EXPECT_STREQ(autograd::grad_fn(y)->name(), "MulBackward0");
  const Tensor target = ops::zeros({2});
  ops::copy_(target, x);
  EXPECT_TRUE(target.requires_grad());
  run(ops::sum(target));
  EXPECT_EQ(grad_of(x), (std::vector<float>{1, 1}));
  EXPECT_TRUE(contains(message_of([&] { ops::add_out(ops::zeros({2}), x, x); }), "out="));
}

TEST(Detach, SharesBytesWithoutHistory) {
  const Tensor x = leaf({1, 2});
  const Tensor y = ops::detach(x * 2);
  EXPECT_FALSE(y.requires_grad());
  const Tensor d = autograd::detach(x);
  EXPECT_EQ(d.data(), x.data());
  EXPECT_TRUE(contains(message_of([&] { autograd::set_requires_grad(x * 2, false); }), "leaf"));
}

TEST(Chains, AMillionNodesBuildRunAndDie) {
  const Tensor x = leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = ops::neg(y);
    run(y);
    EXPECT_EQ(grad_of(x), std::vector<float>{1});
  }
  // One that never runs, freed as a graph with saved tensors.
  Tensor z = x;
  for (int i = 0; i < 1'000'000; ++i) z = ops::mul(z, x);
  z = {};
  EXPECT_EQ(x.impl()->use_count(), 1u);
}

}  // namespace

// Views, writes in place, hooks and functions of one's own, from C++.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lamina/autograd/engine.h"
#include "lamina/autograd/function.h"
#include "lamina/autograd/view.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"

namespace lamina {
namespace {

using autograd::grad_fn;

Tensor leaf(IntList sizes, double value) {
  const Tensor t = ops::full(sizes, Scalar(value), ScalarType::Float64);
  autograd::set_requires_grad(t, true);
  return t;
}
double at(const Tensor& t, int64_t i) { return scalar_of(ops::select(t, 0, i)).to_double(); }

TEST(Views, AWriteThroughAViewGoesOnInCopySlices) {
  const Tensor x = leaf({4}, 2.0);
  const Tensor y = ops::mul(x, Scalar(1));
  const Tensor left = ops::slice(y, 0, 0, 2), right = ops::slice(y, 0, 1, 4);
  ops::mul_(left, Scalar(10));
  EXPECT_STREQ(grad_fn(y)->name(), "CopySlices");
  EXPECT_STREQ(grad_fn(right)->name(), "AsStridedBackward0");
  autograd::backward({ops::sum(right)}, {}, false, false);
  EXPECT_EQ(at(autograd::grad(x), 0), 0);
  EXPECT_EQ(at(autograd::grad(x), 1), 10);
  EXPECT_EQ(at(autograd::grad(x), 2), 1);
}

TEST(Views, KnowTheirBaseAndNothingElseDoes) {
  const Tensor x = ops::ones({4});
  const Tensor view = ops::view(ops::slice(x, 0, 0, 2), {2, 1});
  EXPECT_EQ(view.impl()->base(), x.impl());
  EXPECT_EQ(autograd::detach(x).impl()->base(), nullptr);
  EXPECT_EQ(x.impl()->base(), nullptr);
}

TEST(Views, RefusedWritesRaise) {
  const Tensor x = leaf({4}, 1.0);
  EXPECT_THROW(ops::mul_(x, Scalar(2)), Error);
  EXPECT_THROW(ops::mul_(ops::slice(x, 0, 0, 2), Scalar(2)), Error);
  const Tensor y = ops::mul(x, Scalar(1));
  EXPECT_THROW(ops::mul_(ops::unbind(y, 0)[0], Scalar(2)), Error);
  const autograd::NoGrad guard;
  EXPECT_NO_THROW(ops::mul_(x, Scalar(2)));
}

struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::FunctionContext& ctx, const Tensor& x, double scale) {
    ctx.save_for_backward({x});
    ctx.saved_data["scale"] = scale;
    return ops::mul(ops::mul(ops::mul(x, x), x), Scalar(scale));
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& ctx,
                                      const std::vector<Tensor>& grads) {
    const Tensor x = ctx.saved()[0];
    const double scale = std::get<double>(ctx.saved_data["scale"]);
    return {ops::mul(grads[0], ops::mul(ops::mul(x, x), Scalar(3 * scale)))};
  }
};

TEST(Function, HasDerivativesOfEveryOrder) {
  const Tensor x = leaf({1}, 2.0);
  const Tensor y = Cube::apply(x, 0.5);
  EXPECT_EQ(at(y, 0), 4);
  const Tensor first = autograd::grad({y}, {x}, {}, true, true, false)[0];
  EXPECT_EQ(at(first, 0), 6);
  const Tensor second = autograd::grad({first}, {x}, {}, false, false, false)[0];
  EXPECT_EQ(at(second, 0), 6);
  EXPECT_NO_THROW(autograd::backward({y}, {}, false, false));
  EXPECT_THROW(autograd::backward({y}, {}, false, false), Error);  // what it kept is gone
}

struct DoubleInPlace : autograd::Function<DoubleInPlace> {
  static Tensor forward(autograd::FunctionContext& ctx, const Tensor& x) {
    ctx.mark_dirty({x});
    return ops::mul_(x, Scalar(2));
  }
  static std::vector<Tensor> backward(autograd::FunctionContext&,
                                      const std::vector<Tensor>& grads) {
    return {ops::mul(grads[0], Scalar(2))};
  }
};
struct TooFew : autograd::Function<TooFew> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& a, const Tensor& b) {
    return ops::add(a, b);
  }
  static std::vector<Tensor> backward(autograd::FunctionContext&,
                                      const std::vector<Tensor>& grads) {
    return {grads[0]};
  }
};

TEST(Function, DirtyInputsAndWrongCounts) {
  const Tensor x = leaf({3}, 1.0);
  const Tensor y = ops::mul(x, Scalar(1));
  EXPECT_TRUE(DoubleInPlace::apply(y).is_same(y));
  autograd::backward({ops::sum(y)}, {}, false, false);
  EXPECT_EQ(at(autograd::grad(x), 0), 2);
  EXPECT_THROW(DoubleInPlace::apply(x), Error);
  const Tensor z = TooFew::apply(x, x);
  EXPECT_THROW(autograd::backward({ops::sum(z)}, {}, false, false), Error);
}

class Count final : public autograd::TensorHook {
 public:
  explicit Count(int& n) : n_(n) {}
  void run(Tensor& grad) override {
    ++n_;
    grad = ops::mul(grad, Scalar(3));
  }

 private:
  int& n_;
};

TEST(Hooks, SeeAndReplaceGradients) {
  const Tensor x = leaf({2}, 1.0);
  const Tensor y = ops::mul(x, Scalar(2));
  int seen = 0;
  autograd::register_hook(y, std::make_shared<Count>(seen));
  autograd::register_hook(x, std::make_shared<Count>(seen));
  autograd::retain_grad(y);
  autograd::backward({ops::sum(y)}, {}, false, false);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(at(autograd::grad(x), 0), 18);
  EXPECT_EQ(at(autograd::grad(y), 0), 3);
  EXPECT_THROW(autograd::register_hook(ops::ones({1}), std::make_shared<Count>(seen)), Error);
}

TEST(Hooks, MayBeRegisteredWhileOthersRun) {
  const Tensor x = leaf({8}, 1.0);
  const Tensor y = ops::mul(x, Scalar(2));
  std::atomic<bool> stop{false};
  int seen = 0;
  std::thread registering([&] {
    int unused = 0;
    for (int i = 0; i < 200; ++i) {
      autograd::retain_grad(ops::mul(y, Scalar(1)));
      autograd::register_hook(ops::mul(y, Scalar(1)), std::make_shared<Count>(unused));
    }
    stop = true;
  });
  do {  // once at least, also where the other thread is done first
    autograd::backward({ops::sum(y)}, {}, true, false);
    ++seen;
  } while (!stop);
  registering.join();
  EXPECT_EQ(at(autograd::grad(x), 0), 2.0 * seen);
}

}  // namespace
}  // namespace lamina

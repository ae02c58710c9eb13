// Random numbers inside vmap: the same for all samples, different for each, or an error, as the
// innermost call of vmap says. The key FuncTorchVmapMode, which a thread includes while it is
// inside vmap, brings the random operators here; others have no kernel there.
#include <algorithm>
#include <mutex>

#include "lamina/dispatch/library.h"
#include "lamina/ops/copy.h"
#include "lamina/ops/empty.h"
#include "lamina/ops/lt.h"
#include "lamina/ops/rand.h"
#include "lamina/ops/stack.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

constexpr KeySet kMode = DispatchKey::FuncTorchVmapMode;

bool is_composite(const Operator& op) {
  for (const dispatch::StaticKernel& k : op.info().kernels)
    if (k.key == DispatchKey::CompositeImplicitAutograd) return true;
  return false;
}

// The call without the level that has been dealt with.
void call_outside(const Operator& op, Stack& stack) {
  const KeySet keys = dispatch::keys_of(stack);
  op.call_boxed(dispatch::effective(keys.empty() ? strided_keys(DeviceType::CPU) : keys), stack);
}

void different_factory(const Operator& op, Stack& stack, const Level& level) {
  const Lowered outside(level.number);
  const int at = parameters_of(op).find("size");
  if (at >= 0) {
    auto& size = std::get<std::vector<int64_t>>(stack[static_cast<size_t>(at)]);
    size.insert(size.begin(), level.size);
    call_outside(op, stack);
    stack[0] = wrap(std::get<Tensor>(stack[0]), 0, level.number);
    return;
  }
  std::vector<Tensor> each;
  for (int64_t i = 0; i < level.size; ++i) {
    Stack s = stack;
    call_outside(op, s);
    each.push_back(std::get<Tensor>(s[0]));
  }
  LAMINA_CHECK(!each.empty(), "vmap: ", op.full_name(), " for no sample at all");
  stack.clear();
  stack.emplace_back(wrap(ops::stack(each, 0), 0, level.number));
}

// One sample is drawn and written to all.
void same_in_place(const Operator& op, Stack& stack, const Level& level) {
  const Tensor self = std::get<Tensor>(stack[0]);
  const Tensor target = front(self, level.number);
  Tensor drawn;
  {
    const Lowered outside(level.number);
    const auto* p = stack.size() > 1 ? std::get_if<Tensor>(&stack[1]) : nullptr;
    if (p && level_of(*p) == level.number) {
      // The same uniform numbers, each sample with its own probabilities.
      const auto* g = std::get_if<Generator>(&stack.back());
      const Tensor u = ops::rand(self.sizes(), g ? *g : Generator(), ScalarType::Float32,
                                 std::nullopt, self.device(), std::nullopt);
      const Frame f(op, stack, level.number, level.size);
      drawn = ops::lt(u, f.aligned(*p, self.dim()));
    } else {
      drawn = ops::empty(self.sizes(), self.dtype(), std::nullopt, self.device(), std::nullopt,
                         std::nullopt);
      stack[0] = drawn;
      call_outside(op, stack);
    }
  }
  ops::copy_(target, drawn, false);
  stack.clear();
  stack.emplace_back(self);
}

void random_kernel(const Operator& op, KeySet keys, Stack& stack) {
  if (levels().empty()) return op.call_boxed(keys - kMode, stack);
  const Level level = levels().back();
  const bool writes = op.info().written != 0, composite = is_composite(op);
  bool of_samples = false;
  for (const Value& v : stack)
    if (const auto* t = std::get_if<Tensor>(&v)) of_samples |= level_of(*t) == level.number;
  // A composite may turn out to draw nothing; what it calls comes here again.
  const bool factory = dispatch::keys_of(stack).empty();
  if (composite && !factory && (of_samples || level.randomness != Randomness::Different))
    return op.call_boxed(keys - kMode, stack);
  LAMINA_CHECK(level.randomness != Randomness::Error,
               "vmap: called random operation while in randomness error mode. Please either use "
               "the 'same' or 'different' randomness flags on vmap or perform the randomness "
               "operation out of vmap; got ",
               op.full_name());
  if (!of_samples && level.randomness == Randomness::Same) {
    const Lowered outside(level.number);
    return call_outside(op, stack);
  }
  if (!of_samples) {
    LAMINA_CHECK(!writes,
                 "vmap: Cannot ask for different inplace randomness on an unbatched tensor. ",
                 "This will appear like same randomness; got ", op.full_name());
    if (factory) return different_factory(op, stack, level);
    auto& first = *std::find_if(stack.begin(), stack.end(),
                                [](const Value& v) { return std::holds_alternative<Tensor>(v); });
    first = wrap(taken_out(std::get<Tensor>(first), level.number, level.size), 0, level.number);
    return op.call_boxed(stack);
  }
  Frame f(op, stack, level.number, level.size);
  if (!f.is_batched(stack[0])) return batched_kernel(op, keys - kMode, stack);  // raises
  LAMINA_CHECK(writes || level.randomness != Randomness::Same, "vmap: ", op.full_name(),
               ": the same random numbers for samples with parameters of their own; use "
               "randomness='different'");
  if (level.randomness == Randomness::Same) return same_in_place(op, stack, level);
  const Lowered outside(level.number);
  LAMINA_CHECK(pointwise(f), "vmap: ", op.full_name(), ": the arguments do not fit");
}

}  // namespace

void serve_random_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    static auto* library = new dispatch::Library("aten", "lamina/transforms/random.cpp");
    for (size_t i = 0; i < dispatch::kNumStaticOperators; ++i) {
      const Operator& op = *dispatch::kStaticOperators[i];
      if (op.info().vmap == static_cast<uint32_t>(VmapRule::random))
        library->implement(op.full_name().substr(6), DispatchKey::FuncTorchVmapMode, random_kernel);
    }
  });
}

// Outside of the level's own call of vmap: samples are drawn like any other elements.
bool draw(Frame& f) { return f.writes() && !is_composite(f.op) && pointwise(f); }

}  // namespace lamina::transforms

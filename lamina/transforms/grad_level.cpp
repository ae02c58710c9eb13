#include "lamina/transforms/grad_level.h"

#include <algorithm>
#include <unordered_set>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/autograd/engine.h"
#include "lamina/autograd/forward.h"
#include "lamina/ops/ones_like.h"
#include "lamina/ops/select.h"
#include "lamina/ops/stack.h"

namespace lamina::transforms {

namespace forward = autograd::forward;

namespace {

thread_local std::vector<int64_t> t_grad_levels;
// Numbers are unique in the process: a graph may be walked by another thread.
std::atomic<int64_t> next_grad_level{1};

class LevelInput final : public autograd::Node {
 public:
  explicit LevelInput(int64_t level) : level(level) {}
  const char* name() const override { return "TransformInput"; }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override {
    if (!results.empty()) results[0] = std::move(grads[0]);
  }
  const int64_t level;
};

// The wrappers around a tensor, outermost first.
std::vector<Batched> wrappers(const Tensor& t) {
  std::vector<Batched> out;
  for (const Batched* b = batched(t); b; b = batched(b->value)) out.push_back(*b);
  return out;
}
// `t` in wrappers like those of another tensor; levels of its own lie where their numbers say.
Tensor rewrap_like(Tensor t, const std::vector<Batched>& like) {
  for (size_t i = like.size(); i-- > 0;) t = put_under(t, like[i].dim, like[i].level);
  return t;
}

std::vector<Level> open_levels(TensorList tensors) {
  std::vector<Level> all = levels_in(tensors);
  for (const Level& l : levels())
    if (std::none_of(all.begin(), all.end(), [&](const Level& k) { return k.number == l.number; }))
      all.push_back(l);
  std::sort(all.begin(), all.end(),
            [](const Level& a, const Level& b) { return a.number < b.number; });
  return all;
}

}  // namespace

int64_t enter_grad() {
  t_grad_levels.push_back(next_grad_level.fetch_add(1, std::memory_order_relaxed));
  return t_grad_levels.back();
}
void leave_grad(int64_t level) { std::erase(t_grad_levels, level); }

Tensor grad_input(const Tensor& t, int64_t level, bool recorded) {
  LAMINA_CHECK(is_differentiable(t.dtype()),
               "grad: only Tensors of floating point and complex dtype can require gradients; got ",
               t.dtype());
  const std::vector<Level> all = open_levels(TensorList(&t, 1));
  const Tensor flat = flattened(t, all);
  Tensor input = forward::detached(flat);
  auto node = IntrusivePtr<LevelInput>::make(level);
  if (recorded && flat.requires_grad()) node->add_edge(autograd::gradient_edge(flat));
  autograd::set_gradient_edge(input, node, node->add_output(input));
  return rewrapped(input, all);
}

bool requires_grad(const Tensor& t) { return innermost(t).requires_grad(); }

bool depends_outside(const Tensor& t, int64_t level) {
  const Tensor& inner = innermost(t);
  if (!inner.requires_grad()) return false;
  std::vector<autograd::Node*> stack{autograd::gradient_edge(inner).node.get()};
  // A leaf's node lives only while somebody holds it.
  if (autograd::is_leaf(inner)) return true;
  std::unordered_set<const autograd::Node*> seen(stack.begin(), stack.end());
  while (!stack.empty()) {
    autograd::Node* const node = stack.back();
    stack.pop_back();
    if (const auto* input = dynamic_cast<const LevelInput*>(node)) {
      if (input->level != level && std::find(t_grad_levels.begin(), t_grad_levels.end(),
                                             input->level) != t_grad_levels.end())
        return true;
    } else if (dynamic_cast<const autograd::AccumulateGrad*>(node)) {
      return true;
    }
    for (const autograd::Edge& e : node->edges())
      if (e.node && seen.insert(e.node.get()).second) stack.push_back(e.node.get());
  }
  return false;
}

Tensor without_history(const Tensor& t) {
  const Tensor& inner = innermost(t);
  if (!inner.requires_grad()) return t;
  return rewrap_like(forward::detached(inner), wrappers(t));
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList output_grads,
                         bool retain_graph, bool create_graph, bool allow_unused) {
  std::vector<Tensor> roots, gradients, leaves;
  std::vector<Level> of_outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::vector<Level> levels = levels_in(TensorList(&outputs[i], 1));
    for (const Level& l : levels)
      if (std::none_of(of_outputs.begin(), of_outputs.end(),
                       [&](const Level& k) { return k.number == l.number; }))
        of_outputs.push_back(l);
    Tensor g = output_grads.empty() ? Tensor() : output_grads[i];
    if (!g.defined() && !levels.empty()) {
      LAMINA_CHECK(outputs[i].numel() == 1,
                   "grad: grad can be implicitly created only for scalar outputs; got ",
                   outputs[i].sizes());
      g = ops::ones_like(without_history(outputs[i]));
    }
    roots.push_back(flattened(outputs[i], levels));
    gradients.push_back(g.defined() ? flattened(g, levels) : g);
  }
  std::vector<std::vector<Batched>> around;
  for (const Tensor& t : inputs) {
    around.push_back(wrappers(t));
    for (const Level& l : of_outputs)
      LAMINA_CHECK(
          std::any_of(around.back().begin(), around.back().end(),
                      [&](const Batched& b) { return b.level == l.number; }),
          "grad: inside vmap, the gradient of samples with respect to a tensor that all of "
          "them share; use torch.func.grad, which gives one gradient for each");
    leaves.push_back(innermost(t));
  }
  std::vector<Tensor> found =
      autograd::grad(roots, leaves, gradients, retain_graph, create_graph, allow_unused);
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].defined()) found[i] = rewrap_like(found[i], around[i]);
  return found;
}

void apply_node(autograd::Node& node, std::span<Tensor> grads, std::span<Tensor> results) {
  int64_t level = -1;
  for (const Tensor& g : grads) level = std::max(level, level_of(g));
  if (level < 0) return node.apply(grads, results);
  const std::vector<Tensor> given(grads.begin(), grads.end());
  try {
    return node.apply(grads, results);
  } catch (const BatchingError&) {
    for (Tensor& r : results) r = Tensor();
  }
  int64_t size = 0;
  for (const Tensor& g : given)
    if (level_of(g) == level) size = batched(g)->value.sizes()[batched(g)->dim];
  std::vector<std::vector<Tensor>> rows(results.size());
  for (int64_t i = 0; i < size; ++i) {
    std::vector<Tensor> in, out(results.size());
    for (const Tensor& g : given)
      in.push_back(level_of(g) == level ? ops::select(batched(g)->value, batched(g)->dim, i) : g);
    apply_node(node, in, out);
    for (size_t k = 0; k < out.size(); ++k)
      if (out[k].defined()) rows[k].push_back(std::move(out[k]));
  }
  for (size_t k = 0; k < results.size(); ++k)
    if (!rows[k].empty() && rows[k].size() == static_cast<size_t>(size))
      results[k] = wrap(ops::stack(rows[k], 0), 0, level);
}

Tensor make_dual(const Tensor& primal, const Tensor& tangent, int level) {
  const Tensor both[] = {primal, tangent};
  const std::vector<Level> all = levels_in(TensorList(both, 2));
  if (all.empty()) return forward::make_dual(primal, tangent, level);
  LAMINA_CHECK(primal.sizes() == tangent.sizes(),
               "make_dual: the tangent must have the sizes of the primal; got ", tangent.sizes(),
               "; expected ", primal.sizes());
  return rewrapped(forward::make_dual(flattened(primal, all), flattened(tangent, all), level), all);
}

std::pair<Tensor, Tensor> unpack_dual(const Tensor& dual, int level) {
  const std::vector<Batched> around = wrappers(dual);
  forward::Dual d = forward::unpack_dual(innermost(dual), level);
  if (!around.empty()) {
    d.primal = rewrap_like(d.primal, around);
    if (d.tangent.defined()) d.tangent = rewrap_like(d.tangent, around);
  }
  return {d.primal, d.tangent};
}

}  // namespace lamina::transforms

#include "lamina/autograd/engine.h"

#include <algorithm>
#include <unordered_map>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/core/error.h"
#include "lamina/ops/add.h"
#include "lamina/ops/ones_like.h"

namespace lamina::autograd {

namespace {

// One backward pass. Nodes run in reverse order of their making as soon as all gradients that flow
// into them are known.
class Pass {
 public:
  Pass(bool retain_graph, bool create_graph) : retain_(retain_graph), mode_(create_graph) {}

  void add_root(Edge edge, Tensor grad) { roots_.push_back({std::move(edge), std::move(grad)}); }
  // The gradient that reaches `edge` is wanted as a result, number `i`.
  void capture(const Edge& edge, size_t i) { captures_.push_back({edge, i}); }
  // Runs; with captures only nodes on a way to one of them run. Accumulators run unless they are
  // captured.
  void run(std::vector<Tensor>* captured);

 private:
  struct State {
    uint32_t dependencies = 0;
    bool needed = true;
    std::vector<Tensor> grads;
  };
  struct Root {
    Edge edge;
    Tensor grad;
  };
  struct Capture {
    Edge edge;
    size_t index;
  };

  void count_dependencies();
  void mark_needed();
  void add_grad(State& s, Node& node, uint32_t nr, Tensor grad);
  void push(Node* node) {
    ready_.push_back(node);
    std::push_heap(ready_.begin(), ready_.end(), runs_later);
  }
  static bool runs_later(const Node* a, const Node* b) { return a->sequence() < b->sequence(); }

  bool retain_;
  GradModeGuard mode_;
  std::vector<Root> roots_;
  std::vector<Capture> captures_;
  std::unordered_map<Node*, State> states_;
  std::vector<Node*> order_;  // parents before children, as found
  std::vector<Node*> ready_;  // heap by sequence number
};

void Pass::count_dependencies() {
  for (const Root& r : roots_)
    if (states_.try_emplace(r.edge.node.get()).second) order_.push_back(r.edge.node.get());
  for (size_t i = 0; i < order_.size(); ++i)
    for (const Edge& e : order_[i]->edges()) {
      if (!e.node) continue;
      const auto [it, fresh] = states_.try_emplace(e.node.get());
      ++it->second.dependencies;
      if (fresh) order_.push_back(e.node.get());
    }
}

void Pass::mark_needed() {
  for (auto& [node, state] : states_) state.needed = false;
  for (const Capture& c : captures_)
    if (const auto it = states_.find(c.edge.node.get()); it != states_.end())
      it->second.needed = true;
  // Children are needed before their parents are looked at: by sequence an input's node is older
  // than its user's, but accumulators are made late, so the closure is taken until nothing changes.
  std::vector<Node*> nodes = order_;
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->sequence() < b->sequence(); });
  for (bool changed = true; changed;) {
    changed = false;
    for (Node* n : nodes) {
      State& s = states_.at(n);
      if (s.needed) continue;
      for (const Edge& e : n->edges())
        if (e.node && states_.at(e.node.get()).needed) {
          s.needed = changed = true;
          break;
        }
    }
  }
}

void Pass::add_grad(State& s, Node& node, uint32_t nr, Tensor grad) {
  const size_t n = std::max<size_t>({size_t{nr} + 1, node.num_outputs(), 1});
  if (s.grads.size() < n) s.grads.resize(n);
  Tensor& slot = s.grads[nr];
  if (!grad.defined()) return;
  if (!slot.defined())
    slot = std::move(grad);
  else if (!grad_enabled() && slot.impl()->use_count() == 1 && slot.storage()->use_count() == 1 &&
           slot.dtype() == grad.dtype() && !slot.impl()->is_view() &&
           slot.is_non_overlapping_and_dense())
    ops::add_(slot, grad);  // nobody else sees this sum
  else
    slot = ops::add(slot, grad);
}

void Pass::run(std::vector<Tensor>* captured) {
  count_dependencies();
  if (captured) mark_needed();
  for (Root& r : roots_) {
    State& s = states_.at(r.edge.node.get());
    add_grad(s, *r.edge.node, r.edge.output_nr, std::move(r.grad));
  }
  for (Node* n : order_)
    if (const State& s = states_.at(n); s.dependencies == 0) push(n);
  std::vector<Tensor> results;
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(), runs_later);
    Node* node = ready_.back();
    ready_.pop_back();
    State& s = states_.at(node);
    bool is_captured = false;
    for (const Capture& c : captures_)
      if (c.edge.node.get() == node) {
        is_captured = true;
        if (c.edge.output_nr < s.grads.size()) (*captured)[c.index] = s.grads[c.edge.output_nr];
      }
    const bool is_accumulator = node->edges().empty() && is_captured;
    results.clear();
    results.resize(node->edges().size());
    // A node that is only captured need not run: what it passes on nobody asked for.
    bool passes_on = !captured;
    if (captured)
      for (const Edge& e : node->edges()) passes_on |= e.node && states_.at(e.node.get()).needed;
    if (passes_on && !is_accumulator) {
      std::vector<Tensor> grads = std::move(s.grads);
      const size_t n = std::max<size_t>(node->num_outputs(), 1);
      if (grads.size() < n) grads.resize(n);
      bool any = false;
      for (const Tensor& g : grads) any |= g.defined();
      if (any) {
        node->apply(grads, results);
        if (!retain_) node->release_saved();
      }
    }
    s.grads.clear();
    const std::vector<Edge>& edges = node->edges();
    for (size_t i = 0; i < edges.size(); ++i) {
      if (!edges[i].node) continue;
      State& next = states_.at(edges[i].node.get());
      if (next.needed) add_grad(next, *edges[i].node, edges[i].output_nr, std::move(results[i]));
      if (--next.dependencies == 0) push(edges[i].node.get());
    }
  }
}

struct Roots {
  std::vector<Edge> edges;
  std::vector<Tensor> grads;
};

Roots make_roots(TensorList roots, TensorList root_grads, bool create_graph) {
  LAMINA_CHECK(root_grads.size() == roots.size() || root_grads.empty(), "backward: got ",
               roots.size(), " tensors and ", root_grads.size(), " gradients");
  Roots out;
  for (size_t i = 0; i < roots.size(); ++i) {
    const Tensor& root = roots[i];
    Edge edge = gradient_edge(root);
    LAMINA_CHECK(edge.node, "backward: element ", i,
                 " of tensors does not require grad and does not have a grad_fn");
    Tensor g = root_grads.empty() ? Tensor() : root_grads[i];
    if (!g.defined()) {
      LAMINA_CHECK(root.numel() == 1,
                   "backward: grad can be implicitly created only for scalar outputs; got ", root);
      LAMINA_CHECK(!root.is_complex(),
                   "backward: grad can be implicitly created only for real scalar outputs but got ",
                   root.dtype());
      const NoGrad guard;
      g = ops::ones_like(root);
    } else {
      LAMINA_CHECK(g.sizes() == root.sizes(), "backward: Mismatch in shape: grad_output[", i,
                   "] has a shape of ", g.sizes(), " and output[", i, "] has a shape of ",
                   root.sizes(), ".");
      LAMINA_CHECK(g.is_complex() == root.is_complex(),
                   "backward: For complex Tensors, both grad_output and output are "
                   "required to have the same dtype. Mismatch in dtype: grad_output[",
                   i, "] has a dtype of ", g.dtype(), " and output[", i, "] has a dtype of ",
                   root.dtype(), ".");
      LAMINA_CHECK(g.device().type == root.device().type, "backward: grad_output[", i, "] is on ",
                   g.device(), " and output[", i, "] is on ", root.device(),
                   "; expected one device");
      if (!create_graph && g.requires_grad()) g = detach(g);
    }
    out.edges.push_back(std::move(edge));
    out.grads.push_back(std::move(g));
  }
  return out;
}

}  // namespace

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList output_grads,
                         bool retain_graph, bool create_graph, bool allow_unused) {
  Roots roots = make_roots(outputs, output_grads, create_graph);
  Pass pass(retain_graph, create_graph);
  for (size_t i = 0; i < inputs.size(); ++i) {
    LAMINA_CHECK(inputs[i].requires_grad(),
                 "grad: One of the differentiated Tensors does not require grad");
    pass.capture(gradient_edge(inputs[i]), i);
  }
  for (size_t i = 0; i < roots.edges.size(); ++i)
    pass.add_root(std::move(roots.edges[i]), std::move(roots.grads[i]));
  std::vector<Tensor> result(inputs.size());
  pass.run(&result);
  if (!allow_unused)
    for (size_t i = 0; i < result.size(); ++i)
      LAMINA_CHECK(result[i].defined(),
                   "grad: One of the differentiated Tensors appears to not have been used in the "
                   "graph. Set allow_unused=True if this is the desired behavior.");
  return result;
}

void backward(TensorList roots, TensorList root_grads, bool retain_graph, bool create_graph,
              TensorList inputs) {
  if (!inputs.empty()) {
    for (const Tensor& t : inputs)
      LAMINA_CHECK(is_leaf(t) || t.requires_grad(),
                   "backward: one of the inputs does not require grad");
    const std::vector<Tensor> grads =
        grad(roots, inputs, root_grads, retain_graph, create_graph, true);
    const GradModeGuard guard(create_graph);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!grads[i].defined()) continue;
      Meta& m = require_meta(inputs[i]);
      m.grad = m.grad.defined() ? ops::add(m.grad, grads[i]) : grads[i];
    }
    return;
  }
  Roots made = make_roots(roots, root_grads, create_graph);
  Pass pass(retain_graph, create_graph);
  for (size_t i = 0; i < made.edges.size(); ++i)
    pass.add_root(std::move(made.edges[i]), std::move(made.grads[i]));
  pass.run(nullptr);
}

}  // namespace lamina::autograd

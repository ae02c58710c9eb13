#include "lamina/autograd/engine.h"

#include <algorithm>
#include <unordered_map>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/autograd/formulas.h"
#include "lamina/autograd/forward.h"
#include "lamina/core/error.h"
#include "lamina/event/event.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/add.h"
#include "lamina/ops/any.h"
#include "lamina/ops/isnan.h"
#include "lamina/ops/ones_like.h"
#include "lamina/transforms/grad_level.h"

namespace lamina::autograd {

namespace {
std::atomic<uint32_t> next_pass{1};
}  // namespace

// One backward pass. Nodes run in reverse order of their making as soon as all gradients that flow
// into them are known.
class Pass {
 public:
  Pass(bool retain_graph, bool create_graph);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void add_root(Edge edge, Tensor grad) { roots_.push_back({std::move(edge), std::move(grad)}); }
  // The gradient that reaches `edge` is wanted as a result, number `i`; `add_to`: it is added to
  // the .grad of that tensor instead.
  void capture(const Edge& edge, size_t i) { captures_.push_back({edge, i}); }
  // Runs; with captures only nodes on a way to one of them run.
  void run(std::vector<Tensor>* captured);

  uint32_t number() const { return number_; }
  Node* running() const { return running_; }
  bool executes(const Node* node) const {
    const uint32_t place = place_of(node);
    return place != kNone && states_[place].needed;
  }
  bool wants(const Node* node) const {
    const uint32_t place = place_of(node);
    return place == kNone || states_[place].needed;
  }
  void at_end(std::function<void()> f) { at_end_.push_back(std::move(f)); }
  bool reaches_all() const { return captures_.empty(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct State {
    Node* node;
    uint32_t dependencies = 0;
    bool needed = true;  // on a way to a captured gradient
    bool captured = false;
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

  // A node's place in states_: it notes the place itself while no other pass uses it.
  uint32_t place_of(const Node* node) const {
    const uint64_t slot = node->pass_slot().load(std::memory_order_relaxed);
    if (static_cast<uint32_t>(slot >> 32) == number_) return static_cast<uint32_t>(slot);
    const auto found = shared_.find(node);
    return found == shared_.end() ? kNone : found->second;
  }
  uint32_t enter(Node* node);
  void count_dependencies();
  void mark_needed();
  void add_grad(State& s, uint32_t nr, Tensor grad);
  void run_node(State& s, std::vector<Tensor>* captured);
  void push(uint32_t place) {
    ready_.push_back(place);
    std::push_heap(ready_.begin(), ready_.end(), Later{states_});
  }
  struct Later {
    const std::vector<State>& states;
    bool operator()(uint32_t a, uint32_t b) const {
      return states[a].node->sequence() < states[b].node->sequence();
    }
  };

  const uint32_t number_;
  const bool retain_;
  GradModeGuard mode_;
  Pass* const outer_;
  const bool outer_selective_;
  Node* running_ = nullptr;
  std::vector<Root> roots_;
  std::vector<Capture> captures_;
  std::vector<State> states_;                         // users before what they use, as found
  std::unordered_map<const Node*, uint32_t> shared_;  // nodes that another pass uses as well
  std::vector<uint32_t> ready_;                       // heap by sequence number
  std::vector<std::vector<Tensor>> spare_;            // buffers of nodes that have run
  std::vector<Tensor> results_;
  std::vector<std::function<void()>> at_end_;
};

namespace {
constinit thread_local Pass* t_pass = nullptr;
}  // namespace

Pass::Pass(bool retain_graph, bool create_graph)
    : number_(next_pass.fetch_add(1, std::memory_order_relaxed)),
      retain_(retain_graph),
      mode_(create_graph),
      outer_(t_pass),
      outer_selective_(Node::t_selective) {
  t_pass = this;
  Node::t_selective = false;
}

Pass::~Pass() {
  for (const State& s : states_)
    if (static_cast<uint32_t>(s.node->pass_slot().load(std::memory_order_relaxed) >> 32) == number_)
      s.node->pass_slot().store(0, std::memory_order_relaxed);
  t_pass = outer_;
  Node::t_selective = outer_selective_;
}

uint32_t Pass::enter(Node* node) {
  const auto place = static_cast<uint32_t>(states_.size());
  states_.push_back({node, 0, true, false, {}});
  uint64_t free = 0;
  if (!node->pass_slot().compare_exchange_strong(free, uint64_t{number_} << 32 | place,
                                                 std::memory_order_relaxed))
    shared_.emplace(node, place);
  return place;
}

void Pass::count_dependencies() {
  for (const Root& r : roots_)
    if (place_of(r.edge.node.get()) == kNone) enter(r.edge.node.get());
  for (size_t i = 0; i < states_.size(); ++i) {
    const EdgeList& edges = states_[i].node->edges();
    for (const Edge& e : edges) {
      if (!e.node) continue;
      uint32_t place = place_of(e.node.get());
      if (place == kNone) place = enter(e.node.get());
      ++states_[place].dependencies;
    }
  }
}

void Pass::mark_needed() {
  for (State& s : states_) s.needed = false;
  for (const Capture& c : captures_)
    if (const uint32_t place = place_of(c.edge.node.get()); place != kNone)
      states_[place].needed = states_[place].captured = true;
  // In an order in which every node comes before its users, one look at each is enough.
  std::vector<uint32_t> waits(states_.size());
  std::vector<uint32_t> order;
  order.reserve(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    waits[i] = states_[i].dependencies;
    if (waits[i] == 0) order.push_back(static_cast<uint32_t>(i));
  }
  for (size_t i = 0; i < order.size(); ++i)
    for (const Edge& e : states_[order[i]].node->edges())
      if (e.node)
        if (const uint32_t place = place_of(e.node.get()); --waits[place] == 0)
          order.push_back(place);
  for (size_t i = order.size(); i-- > 0;) {
    State& s = states_[order[i]];
    for (const Edge& e : s.node->edges()) {
      if (s.needed) break;
      s.needed = e.node && states_[place_of(e.node.get())].needed;
    }
  }
}

bool Node::selected(const Node* node) {
  const uint64_t slot = node->pass_slot_.load(std::memory_order_relaxed);
  // A node that this pass does not know (inside CopySlices) is asked for by whoever runs it.
  return slot == 0 || t_pass->wants(node);
}

void Pass::add_grad(State& s, uint32_t nr, Tensor grad) {
  const size_t n = std::max<size_t>({size_t{nr} + 1, s.node->num_outputs(), 1});
  if (s.grads.size() < n) {
    if (s.grads.capacity() == 0 && !spare_.empty()) {
      s.grads = std::move(spare_.back());
      spare_.pop_back();
    }
    s.grads.resize(n);
  }
  Tensor& slot = s.grads[nr];
  if (!grad.defined()) return;
  if (!slot.defined())
    slot = std::move(grad);
  else if (!grad_enabled() && slot.keys() == strided_keys(slot.device().type) &&
           grad.keys() == slot.keys() && slot.impl()->use_count() == 1 &&
           slot.storage()->use_count() == 1 && slot.dtype() == grad.dtype() &&
           !slot.impl()->is_view() && slot.is_non_overlapping_and_dense())
    ops::add_(slot, grad);  // nobody else sees this sum
  else
    slot = ops::add(slot, grad);
}

namespace {

// What a function of the user, or a hook, gave as the gradient of something that looked like
// `meta`: brought to its size and type where that is plain, else refused.
void fit_gradient(const ResultMeta& meta, const char* name, size_t i, Tensor& grad) {
  bool reducible = grad.dim() >= static_cast<int64_t>(meta.sizes.size());
  for (size_t k = 0; reducible && k < meta.sizes.size(); ++k) {
    const int64_t want = meta.sizes[meta.sizes.size() - 1 - k];
    reducible = want == 1 || want == grad.size(-1 - static_cast<int64_t>(k));
  }
  LAMINA_CHECK(reducible, "Function ", name, " returned an invalid gradient at index ", i,
               " - got ", grad.sizes(), " but expected shape compatible with ",
               IntList(meta.sizes));
  LAMINA_CHECK(is_differentiable(grad.dtype()), "Function ", name,
               " returned an invalid gradient at index ", i,
               " - expected a floating or complex type but got ", grad.dtype());
  LAMINA_CHECK(grad.device().type == meta.device.type, "Function ", name,
               " returned an invalid gradient at index ", i, " - expected device ", meta.device,
               " but got ", grad.device());
  grad = formulas::fit(grad, meta.sizes, meta.dtype);
}

ResultMeta meta_of(const Tensor& t) {
  return {Sizes(std::span<const int64_t>(t.sizes())), t.dtype(), t.device()};
}

void fit_to_edge(const Edge& edge, const char* name, size_t i, Tensor& grad) {
  if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(edge.node.get()))
    fit_gradient(meta_of(leaf->variable()), name, i, grad);
  else if (edge.output_nr < edge.node->num_outputs())
    fit_gradient(edge.node->output(edge.output_nr), name, i, grad);
}

template <class T>
std::vector<T> copied(const std::vector<T>& list) {
  const std::lock_guard lock(hooks_mutex);
  return list;
}

// Hooks that are registered while these run wait for the next pass.
void run_tensor_hooks(const std::vector<NodeHooks::OfResult>& hooks, std::vector<Tensor>& grads) {
  for (const NodeHooks::OfResult& item : hooks) {
    if (item.number >= grads.size() || !grads[item.number].defined()) continue;
    const Tensor before = grads[item.number];
    item.hook->run(grads[item.number]);
    if (!grads[item.number].is_same(before)) {
      Tensor& now = grads[item.number];
      LAMINA_CHECK(now.defined() && now.sizes() == before.sizes(),
                   "hook: has changed the size of value; got ",
                   now.defined() ? str(now) : std::string("None"), "; expected ", before);
      LAMINA_CHECK(now.dtype() == before.dtype(), "hook: has changed the type of value; got ", now,
                   "; expected ", before);
      LAMINA_CHECK(now.device().type == before.device().type,
                   "hook: has changed the device of value; got ", now.device(), "; expected ",
                   before.device());
    }
  }
}

}  // namespace

void Pass::run_node(State& s, std::vector<Tensor>* captured) {
  Node* const node = s.node;
  std::vector<Tensor> grads = std::move(s.grads);
  s.grads.clear();
  const size_t n = std::max<size_t>(node->num_outputs(), 1);
  if (grads.size() < n) grads.resize(n);
  const NodeHooks* hooks = node->hooks_if_any();
  run_tensor_hooks(node->leaf_hooks(), grads);
  if (hooks) {
    run_tensor_hooks(copied(hooks->tensor), grads);
    run_tensor_hooks(copied(hooks->retain_grad), grads);
  }
  bool passes_on = true;
  if (captured) {
    passes_on = false;
    if (s.captured)
      for (const Capture& c : captures_)
        if (c.edge.node.get() == node && c.edge.output_nr < grads.size())
          (*captured)[c.index] = grads[c.edge.output_nr];
    // A node that is only captured need not run: what it passes on nobody asked for.
    for (const Edge& e : node->edges())
      if (e.node && states_[place_of(e.node.get())].needed) {
        passes_on = true;
        break;
      }
  }
  results_.clear();
  results_.resize(node->edges().size());
  bool any = false;
  for (const Tensor& g : grads) any |= g.defined();
  if (passes_on && any) {
    if (hooks) {
      for (const auto& h : copied(hooks->before)) h->run(grads);
    }
    std::vector<Tensor> seen;
    const auto after = hooks ? copied(hooks->after) : decltype(hooks->after)();
    if (!after.empty()) seen = grads;
    const bool nan_hunt = anomaly_enabled() && anomaly_checks_nan();
    {
      const event::Scope scope("backward", node->name());
      bool batched = false;
      for (const Tensor& g : grads) batched |= g.defined() && transforms::is_batched(g);
      if (batched) [[unlikely]]
        transforms::apply_node(*node, grads, results_);
      else
        node->apply(grads, results_);
    }
    for (const auto& h : after) h->run(results_, seen);
    if (node->is_user_defined() || hooks)
      for (size_t i = 0; i < results_.size(); ++i)
        if (results_[i].defined() && node->edges()[i].node)
          fit_to_edge(node->edges()[i], node->name(), i, results_[i]);
    if (nan_hunt) [[unlikely]]
      for (size_t i = 0; i < results_.size(); ++i)
        if (results_[i].defined() && node->edges()[i].node) {
          const NoGrad guard;
          LAMINA_CHECK(scalar_of(ops::any(ops::isnan(results_[i]))).equals(0), "Function '",
                       node->name(), "' returned nan values in its ", i, "th output.");
        }
    if (!retain_) node->release_saved();
  }
  grads.clear();
  spare_.push_back(std::move(grads));
}

void Pass::run(std::vector<Tensor>* captured) {
  count_dependencies();
  if (captured) {
    mark_needed();
    Node::t_selective = true;
  }
  for (Root& r : roots_)
    add_grad(states_[place_of(r.edge.node.get())], r.edge.output_nr, std::move(r.grad));
  for (size_t i = 0; i < states_.size(); ++i)
    if (states_[i].dependencies == 0) push(static_cast<uint32_t>(i));
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end(), Later{states_});
    State& s = states_[ready_.back()];
    ready_.pop_back();
    Node* const node = s.node;
    running_ = node;
    if (s.needed) {
      try {
        run_node(s, captured);
      } catch (...) {
        if (anomaly_enabled()) warn_of_failure(*node);
        throw;
      }
    } else {
      results_.assign(node->edges().size(), Tensor());
    }
    running_ = nullptr;
    const EdgeList& edges = node->edges();
    for (size_t i = 0; i < edges.size(); ++i) {
      if (!edges[i].node) continue;
      const uint32_t place = place_of(edges[i].node.get());
      State& next = states_[place];
      if (next.needed) add_grad(next, edges[i].output_nr, std::move(results_[i]));
      if (--next.dependencies == 0) push(place);
    }
  }
  for (size_t i = 0; i < at_end_.size(); ++i) at_end_[i]();
}

Node* running_node() { return t_pass ? t_pass->running() : nullptr; }

int64_t running_pass() { return t_pass ? static_cast<int64_t>(t_pass->number()) : -1; }

bool pass_executes(const Node& node) {
  LAMINA_CHECK(t_pass, "pass_executes: no backward pass is running on this thread");
  return t_pass->executes(&node);
}

bool pass_reaches_all() { return !t_pass || t_pass->reaches_all(); }

void at_end_of_pass(std::function<void()> callback) {
  LAMINA_CHECK(t_pass,
               "queue_callback: Final callbacks can only be installed during backward pass.");
  t_pass->at_end(std::move(callback));
}

namespace {

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
      if (!create_graph && g.requires_grad()) g = forward::detached(g);
    }
    out.edges.push_back(std::move(edge));
    out.grads.push_back(std::move(g));
  }
  return out;
}

}  // namespace

std::vector<Tensor> grad_of_edges(std::vector<Edge> roots, std::vector<Tensor> root_grads,
                                  const std::vector<Edge>& inputs, bool retain_graph,
                                  bool create_graph) {
  Pass pass(retain_graph, create_graph);
  for (size_t i = 0; i < inputs.size(); ++i) pass.capture(inputs[i], i);
  for (size_t i = 0; i < roots.size(); ++i)
    pass.add_root(std::move(roots[i]), std::move(root_grads[i]));
  std::vector<Tensor> result(inputs.size());
  pass.run(&result);
  return result;
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList output_grads,
                         bool retain_graph, bool create_graph, bool allow_unused) {
  Roots roots = make_roots(outputs, output_grads, create_graph);
  std::vector<Edge> edges;
  for (const Tensor& t : inputs) {
    LAMINA_CHECK(t.requires_grad(),
                 "grad: One of the differentiated Tensors does not require grad");
    edges.push_back(gradient_edge(t));
  }
  std::vector<Tensor> result = grad_of_edges(std::move(roots.edges), std::move(roots.grads), edges,
                                             retain_graph, create_graph);
  if (!allow_unused)
    for (size_t i = 0; i < result.size(); ++i)
      LAMINA_CHECK(result[i].defined(), "grad: The differentiated Tensor at index ", i,
                   " appears to not have been used in the graph. Set allow_unused=True if this is "
                   "the desired behavior.");
  return result;
}

void backward(TensorList roots, TensorList root_grads, bool retain_graph, bool create_graph,
              TensorList inputs) {
  Roots made = make_roots(roots, root_grads, create_graph);
  Pass pass(retain_graph, create_graph);
  for (size_t i = 0; i < made.edges.size(); ++i)
    pass.add_root(std::move(made.edges[i]), std::move(made.grads[i]));
  if (inputs.empty()) {
    pass.run(nullptr);
    return;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    LAMINA_CHECK(inputs[i].requires_grad(), "backward: one of the inputs does not require grad");
    pass.capture(gradient_edge(inputs[i]), i);
  }
  std::vector<Tensor> grads(inputs.size());
  pass.run(&grads);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& g = grads[i];
    if (!g.defined()) continue;
    if (is_leaf(inputs[i])) {
      accumulator_of(inputs[i])->apply({&g, 1}, {});
    } else {
      GradSlot& slot = require_meta(inputs[i]).grad;
      const Tensor current = slot.get();
      slot.exchange(current.defined() ? ops::add(current, g) : std::move(g));
    }
  }
}

}  // namespace lamina::autograd

#include "lamina/autograd/variable.h"

#include <mutex>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/autograd/forward.h"
#include "lamina/autograd/view.h"
#include "lamina/core/error.h"
#include "lamina/dispatch/local_state.h"
#include "lamina/kernels/generated_support.h"
#include "lamina/kernels/result.h"

namespace lamina::autograd {

// Puts a gradient into the .grad of a tensor that is no leaf. The node that runs it may outlive
// the tensor.
class RetainGrad final : public TensorHook {
 public:
  explicit RetainGrad(Meta& meta) : meta_(&meta) {}
  void run(Tensor& grad) override {
    const std::lock_guard lock(mutex_);
    if (meta_) meta_->grad.exchange(grad_enabled() ? grad : copy_of(grad));
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    meta_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Meta* meta_;
};

Meta::~Meta() {
  if (retain_grad) retain_grad->forget();
}

Meta* meta(const Tensor& t) { return static_cast<Meta*>(t.impl()->autograd()); }

Meta& require_meta(const Tensor& t) {
  if (!t.impl()->autograd()) t.impl()->set_autograd(std::unique_ptr<AutogradMeta>(new Meta));
  return *meta(t);
}

void set_requires_grad(const Tensor& t, bool v) {
  if (v)
    LAMINA_CHECK(is_differentiable(t.dtype()),
                 "requires_grad_: only Tensors of floating point and complex dtype can require "
                 "gradients; got ",
                 t);
  else
    LAMINA_CHECK(is_leaf(t),
                 "requires_grad_: you can only change requires_grad flags of leaf variables. If "
                 "you want to use a computed variable in a subgraph that doesn't require "
                 "differentiation use var_no_grad = var.detach().");
  if (!v && !t.impl()->autograd()) return;
  if (v && t.requires_grad()) return;
  LAMINA_CHECK(!v || !t.impl()->is_inference() || inference_enabled(),
               "requires_grad_: Setting requires_grad=True on inference tensor outside "
               "InferenceMode is not allowed.");
  require_meta(t).requires_grad = v;
}

bool is_leaf(const Tensor& t) { return !grad_fn(t); }

Tensor grad(const Tensor& t) {
  const Meta* m = meta(t);
  return m ? m->grad.get() : Tensor();
}

void set_grad(const Tensor& t, const Tensor& g) {
  if (!g.defined()) {
    if (Meta* m = meta(t)) m->grad.exchange({});
    return;
  }
  LAMINA_CHECK(!g.is_same(t), "grad: can't assign Tensor as its own grad");
  LAMINA_CHECK(g.dtype() == t.dtype(),
               "grad: attempting to assign a gradient of another type; got ", g, "; expected ", t);
  LAMINA_CHECK(g.device().type == t.device().type,
               "grad: assigned grad has data located on a different device; got ", g.device(),
               "; expected ", t.device());
  LAMINA_CHECK(g.sizes() == t.sizes(), "grad: attempting to assign a gradient of size ", g.sizes(),
               " to a tensor of size ", t.sizes());
  require_meta(t).grad.exchange(g);
}

IntrusivePtr<Node> grad_fn(const Tensor& t) {
  const TensorImpl* impl = t.impl();
  if (impl->base() && impl->view_version() != impl->version()) refresh_history(t);
  const Meta* m = meta(t);
  return m ? m->grad_fn : nullptr;
}

Tensor detach(const Tensor& t) {
  return alias_window(t, t.sizes(), t.strides(), t.storage_offset());
}

Tensor data_of(const Tensor& t) {
  Tensor alias = detach(t);
  alias.impl()->set_version_counter(IntrusivePtr<VersionCounter>::make());
  return alias;
}

void detach_inplace(const Tensor& t) {
  LAMINA_CHECK(!t.impl()->base(),
               "detach_: Can't detach views in-place. Use detach() instead. If you are using "
               "functions that make several views, such as split(), detach the tensor before.");
  Meta* m = meta(t);
  if (!m) return;
  if (m->grad_fn) set_gradient_edge(t, nullptr, 0);
  m->requires_grad = false;
}

Edge gradient_edge(const Tensor& t) {
  if (!t.requires_grad()) return {};
  if (IntrusivePtr<Node> node = grad_fn(t)) return {std::move(node), meta(t)->output_nr};
  return {accumulator_of(t), 0};
}

void set_history(const Tensor& result, const IntrusivePtr<Node>& node) {
  const uint32_t nr = node->add_output(result);
  if (!is_differentiable(result.dtype())) return;
  require_meta(result).set_edge(node, nr);
}

void set_history(const std::vector<Tensor>& results, const IntrusivePtr<Node>& node) {
  for (const Tensor& t : results) set_history(t, node);
}

namespace {

void attach_retain_grad(Meta& m) {
  NodeHooks& hooks = m.grad_fn->hooks();
  const std::lock_guard lock(hooks_mutex);
  hooks.retain_grad.push_back({m.output_nr, m.retain_grad});
}

}  // namespace

void set_gradient_edge(const Tensor& t, IntrusivePtr<Node> node, uint32_t output_nr) {
  Meta& m = require_meta(t);
  if (m.retain_grad && m.grad_fn) {
    // What .grad will hold is the gradient of the new value.
    auto& list = m.grad_fn->hooks().retain_grad;
    const std::lock_guard lock(hooks_mutex);
    std::erase_if(list, [&](const auto& item) { return item.hook == m.retain_grad; });
  }
  m.set_edge(std::move(node), output_nr);
  m.python_hooks = nullptr;
  if (m.retain_grad && m.grad_fn)
    attach_retain_grad(m);
  else
    m.retain_grad = nullptr;
}

void retain_grad(const Tensor& t) {
  LAMINA_CHECK(t.requires_grad(),
               "retain_grad: can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf(t)) return;
  Meta& m = *meta(t);
  if (m.retain_grad) return;
  m.retain_grad = std::make_shared<RetainGrad>(m);
  attach_retain_grad(m);
}

bool retains_grad(const Tensor& t) {
  const Meta* m = meta(t);
  return m && m->retain_grad;
}

void register_hook(const Tensor& t, std::shared_ptr<TensorHook> hook) {
  LAMINA_CHECK(t.requires_grad(),
               "register_hook: cannot register a hook on a tensor that doesn't require gradient");
  if (const IntrusivePtr<Node> node = grad_fn(t)) {
    NodeHooks& hooks = node->hooks();
    const std::lock_guard lock(hooks_mutex);
    hooks.tensor.push_back({meta(t)->output_nr, std::move(hook)});
    return;
  }
  Meta& m = require_meta(t);
  const std::lock_guard lock(hooks_mutex);
  if (!m.leaf_hooks) m.leaf_hooks = std::make_unique<NodeHooks>();
  m.leaf_hooks->tensor.push_back({0, std::move(hook)});
}

void clear_leaf_hooks(const Tensor& leaf) {
  Meta* m = meta(leaf);
  if (!m) return;
  std::unique_ptr<NodeHooks> gone;
  const std::lock_guard lock(hooks_mutex);
  gone.swap(m->leaf_hooks);
}

void register_post_accumulate_hook(const Tensor& leaf, std::shared_ptr<TensorHook> hook) {
  LAMINA_CHECK(leaf.requires_grad(),
               "register_post_accumulate_grad_hook: cannot register a hook on a tensor that "
               "doesn't require gradient");
  LAMINA_CHECK(is_leaf(leaf),
               "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be "
               "registered on non-leaf tensors");
  require_meta(leaf).post_accumulate = std::move(hook);
}

Tensor copy_with_history(const Tensor& t) {
  Tensor copy = copy_of(t);
  if (Edge edge = gradient_edge(t); edge.node)
    require_meta(copy).set_edge(std::move(edge.node), edge.output_nr);
  forward::copy_tangents(t, copy);
  return copy;
}

void check_inplace(const Tensor& self, const char* op) {
  if (const TensorImpl* base = self.impl()->base()) {
    check_view_origin(self, false);
    const Tensor whole = Tensor::share(const_cast<TensorImpl*>(base));
    LAMINA_CHECK(!(whole.requires_grad() && is_leaf(whole)), op,
                 ": a view of a leaf Variable that requires grad is being used in an in-place "
                 "operation.");
  }
  LAMINA_CHECK(!(self.requires_grad() && is_leaf(self)), op,
               ": a leaf Variable that requires grad is being used in an in-place operation.");
}

void rebase_history(const Tensor& self, const IntrusivePtr<Node>& node) {
  const uint32_t nr = node->add_output(self);
  if (!is_differentiable(self.dtype())) return;
  TensorImpl* base_impl = self.impl()->base();
  if (!base_impl) {
    set_gradient_edge(self, node, nr);
    return;
  }
  const Tensor base = Tensor::share(base_impl);
  auto slices = IntrusivePtr<CopySlices>::make(base, self, node);
  slices->add_output(base);
  set_gradient_edge(base, slices, 0);
  // The view's own history is now a view of what CopySlices made.
  refresh_history(self);
}

namespace {

// The gradient ends here: what was overwritten had no influence on what follows.
class Overwritten final : public Node {
 public:
  explicit Overwritten(const char* name) : name_(name) {}
  const char* name() const override { return name_; }
  void apply(std::span<Tensor>, std::span<Tensor>) override {}

 private:
  const char* name_;
};

}  // namespace

void cut_history(const Tensor& self, const char* node_name) {
  auto node = IntrusivePtr<Overwritten>::make(node_name);
  node->add_edge(gradient_edge(self));
  rebase_history(self, node);
}

void raise_out_recorded(const char* op) {
  raise(ErrorKind::Runtime,
        str(op,
            ": functions with out=... arguments don't support automatic differentiation, but one "
            "of the arguments requires grad."));
}

void raise_inference_write(const char* op) {
  raise(ErrorKind::Runtime,
        str(op,
            ": Inplace update to inference tensor outside InferenceMode is not allowed. You can "
            "make a clone to get a normal tensor before doing inplace update."));
}

RecordAgain::RecordAgain() : excluded_(dispatch::t_local.excluded), mode_(t_mode) {
  dispatch::t_local.excluded = excluded_ - kAutogradKeys;
  t_mode = {};
}

RecordAgain::~RecordAgain() {
  dispatch::t_local.excluded = excluded_;
  t_mode = mode_;
}

}  // namespace lamina::autograd

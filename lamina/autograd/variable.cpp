#include "lamina/autograd/variable.h"

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"

namespace lamina::autograd {

Meta* meta(const Tensor& t) { return static_cast<Meta*>(t.impl()->autograd()); }

Meta& require_meta(const Tensor& t) {
  if (!t.impl()->autograd()) t.impl()->set_autograd(std::make_unique<Meta>());
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
                 "you want to use a computed "
                 "variable in a subgraph that doesn't require differentiation use var_no_grad = "
                 "var.detach().");
  if (!v && !t.impl()->autograd()) return;
  if (v && t.requires_grad()) return;
  LAMINA_CHECK(!v || !t.impl()->is_inference(),
               "requires_grad_: Setting requires_grad=True on inference tensor outside "
               "InferenceMode is not allowed.");
  require_meta(t).requires_grad = v;
}

bool is_leaf(const Tensor& t) {
  const Meta* m = meta(t);
  return !m || !m->grad_fn;
}

const Tensor& grad(const Tensor& t) {
  static const Tensor none;
  const Meta* m = meta(t);
  return m ? m->grad : none;
}

void set_grad(const Tensor& t, const Tensor& g) {
  if (!g.defined()) {
    if (Meta* m = meta(t)) m->grad = {};
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
  require_meta(t).grad = g;
}

IntrusivePtr<Node> grad_fn(const Tensor& t) {
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

Edge gradient_edge(const Tensor& t) {
  if (!t.requires_grad()) return {};
  Meta* m = meta(t);
  if (m->grad_fn) {
    LAMINA_CHECK_IMPLEMENTED(
        !m->is_view || m->view_version == t.impl()->version(),
        "autograd: a view is used after its base, or the view itself, was written in place, which "
        "is not recorded yet; got ",
        t, "; make the view after the write, or write out of place");
    return {m->grad_fn, m->output_nr};
  }
  return {accumulator_of(t), 0};
}

void set_history(const Tensor& result, const IntrusivePtr<Node>& node) {
  const uint32_t nr = node->add_output(result);
  if (!is_differentiable(result.dtype())) return;
  Meta& m = require_meta(result);
  m.grad_fn = node;
  m.output_nr = nr;
  m.has_grad_fn = true;
}

void set_history(const std::vector<Tensor>& results, const IntrusivePtr<Node>& node) {
  for (const Tensor& t : results) set_history(t, node);
}

void set_view_history(const Tensor& result, const IntrusivePtr<Node>& node) {
  set_history(result, node);
  if (Meta* m = meta(result)) {
    m->is_view = true;
    m->view_version = result.impl()->version();
  }
}

void check_inplace(const Tensor& self, const char* op) {
  LAMINA_CHECK(!(self.requires_grad() && is_leaf(self)), op,
               ": a leaf Variable that requires grad is being used in an in-place operation.");
  const Meta* m = meta(self);
  LAMINA_CHECK_IMPLEMENTED(!self.impl()->is_view() && !(m && m->is_view), op,
                           ": writing in place through a view is not recorded yet; got ", self,
                           "; write out of place, or under no_grad");
}

void rebase_history(const Tensor& self, const IntrusivePtr<Node>& node) {
  Meta& m = require_meta(self);
  m.grad_fn = node;
  m.output_nr = node->add_output(self);
  m.has_grad_fn = true;
}

void raise_out_recorded(const char* op) {
  raise(ErrorKind::Runtime,
        str(op,
            ": functions with out=... arguments don't support automatic differentiation, but one "
            "of the arguments requires grad."));
}

}  // namespace lamina::autograd

#include "lamina/autograd/function.h"

#include <algorithm>

#include "lamina/autograd/view.h"
#include "lamina/core/error.h"

namespace lamina::autograd {

namespace {

bool among(const std::vector<Tensor>& list, const Tensor& t) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& o) { return o.is_same(t); });
}

// A view of an input or of anything else made before: writes through it must not pass by the
// user's backward.
void mark_as_made_inside(const Tensor& t, bool several) {
  if (t.impl()->base())
    t.impl()->set_view_origin(several ? ViewOrigin::MultiOutput : ViewOrigin::CustomFunction);
}

}  // namespace

std::vector<Tensor> finish_custom_forward(const std::vector<Tensor>& inputs,
                                          const std::vector<Tensor>& outputs,
                                          const std::vector<Tensor>& dirty,
                                          const std::vector<Tensor>& without_gradient,
                                          const IntrusivePtr<Node>& node, const char* name) {
  for (const Tensor& t : dirty) {
    LAMINA_CHECK(among(outputs, t), name,
                 ": Some elements marked as dirty during the forward method were not returned as "
                 "output. The inputs that are modified inplace must all be outputs of the "
                 "Function.");
    t.impl()->bump_version();
  }
  const auto count =
      std::count_if(outputs.begin(), outputs.end(), [](const Tensor& t) { return t.defined(); });
  std::vector<Tensor> results;
  for (const Tensor& out : outputs) {
    if (!out.defined()) {
      if (node) node->add_output_without_gradient();
      results.emplace_back();
      continue;
    }
    const bool is_input = among(inputs, out);
    const bool is_dirty = among(dirty, out);
    const bool differentiable =
        node && is_differentiable(out.dtype()) && !among(without_gradient, out);
    Tensor t = out;
    if (!differentiable) {
      if (node) node->add_output(t);
      // What carries a history of its own is handed out without it.
      if (t.requires_grad() && !is_dirty) t = detach(t);
    } else if (is_dirty) {
      LAMINA_CHECK(!(t.requires_grad() && is_leaf(t)), name,
                   ": a leaf Variable that requires grad has been used in an in-place operation.");
      if (t.impl()->base()) {
        check_view_origin(t, false);
        LAMINA_CHECK(count == 1, name,
                     ": If your Function modifies inplace an input that is a view of another "
                     "Tensor, your Function cannot return more than one Tensor. This is not "
                     "supported by the current autograd engine.");
      }
      rebase_history(t, node);
    } else if (is_input || (t.requires_grad() && is_leaf(t))) {
      const Tensor original = t;
      t = detach(original);
      set_view_history(t, node, original);
      mark_as_made_inside(t, count > 1);
    } else {
      set_history(t, node);
      mark_as_made_inside(t, count > 1);
    }
    results.push_back(std::move(t));
  }
  return results;
}

SavedTensor save_for_node(const Tensor& t, const std::vector<Tensor>& outputs) {
  for (size_t i = 0; t.defined() && i < outputs.size(); ++i)
    if (outputs[i].is_same(t) && t.requires_grad())
      return SavedTensor::result(t, static_cast<uint32_t>(i));
  return SavedTensor(t);
}

std::vector<Tensor> FunctionContext::saved() const {
  if (in_jvp_) return to_save_;
  std::vector<Tensor> out;
  for (const SavedTensor& s : saved_) out.push_back(s.unpack(node_));
  return out;
}

bool FunctionContext::needs_input_grad(size_t i) const { return node_->has_edge(i); }

void raise_gradient_count(const char* name, size_t got, size_t expected) {
  raise(ErrorKind::Runtime,
        str("function ", name, " returned an incorrect number of gradients (expected ", expected,
            ", got ", got, ")"));
}

}  // namespace lamina::autograd

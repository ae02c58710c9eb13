#include "lamina/autograd/view.h"

#include <algorithm>
#include <mutex>

#include "lamina/core/error.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/_conj.h"
#include "lamina/ops/_neg_view.h"
#include "lamina/ops/as_strided.h"
#include "lamina/ops/clone.h"
#include "lamina/ops/copy.h"
#include "lamina/ops/new_zeros.h"
#include "lamina/ops/view_as_complex.h"
#include "lamina/ops/view_as_real.h"
#include "lamina/ops/zero.h"
#include "lamina/transforms/batched.h"

namespace lamina::autograd {

namespace {

Sizes copy(IntList v) { return Sizes(std::span<const int64_t>(v)); }

Tensor share(const TensorImpl* impl) { return Tensor::share(const_cast<TensorImpl*>(impl)); }

bool marked(const Tensor& t, DispatchKey key) { return t.keys().has(key); }

// A window inside a tensor, by its distance from the tensor's first element.
struct Window {
  Sizes sizes, strides;
  int64_t distance;
  Tensor of(const Tensor& t) const {
    if (distance == 0 && t.sizes() == IntList(sizes) && t.strides() == IntList(strides)) return t;
    return ops::as_strided(t, sizes, strides, t.storage_offset() + distance);
  }
};

Window window_in(const Tensor& view, int64_t origin) {
  return {copy(view.sizes()), copy(view.strides()), view.storage_offset() - origin};
}

// How `result`, which an operator made of `self`, is made again from their base; null where a
// window on the base is enough.
std::shared_ptr<const ViewReplay> replay_of(const Tensor& result, const Tensor& self,
                                            const Tensor& base) {
  const Meta* m = meta(self);
  std::shared_ptr<const ViewReplay> before = m ? m->replay : nullptr;
  const bool to_real = self.is_complex() && !result.is_complex();
  const bool to_complex = !self.is_complex() && result.is_complex();
  const bool conj = marked(self, DispatchKey::Conjugate) != marked(result, DispatchKey::Conjugate);
  const bool neg = marked(self, DispatchKey::Negative) != marked(result, DispatchKey::Negative);
  if (!before && !to_real && !to_complex && !conj && !neg) return nullptr;
  const int64_t origin = to_real      ? 2 * self.storage_offset()
                         : to_complex ? self.storage_offset() / 2
                                      : self.storage_offset();
  return std::make_shared<const ViewReplay>(
      [=, first = window_in(self, base.storage_offset()),
       last = window_in(result, origin)](const Tensor& whole) {
        Tensor t = before ? (*before)(whole) : first.of(whole);
        if (conj) t = ops::_conj(t);
        if (to_real) t = ops::view_as_real(t);
        if (to_complex) t = ops::view_as_complex(t);
        if (neg) t = ops::_neg_view(t);
        return last.of(t);
      });
}

}  // namespace

void note_view(const Tensor& result, const Tensor& self, bool several) {
  TensorImpl* impl = result.impl();
  if (impl->base() || result.is_same(self) || self.impl()->is_inference()) return;
  if (is_differentiable(self.dtype()) && !is_differentiable(result.dtype())) return;
  TensorImpl* base = self.impl()->base() ? self.impl()->base() : self.impl();
  ViewOrigin origin = t_mode.inference ? ViewOrigin::Inference
                      : !t_mode.grad   ? ViewOrigin::NoGrad
                      : several        ? ViewOrigin::MultiOutput
                                       : ViewOrigin::Recorded;
  if (origin == ViewOrigin::Recorded) origin = self.impl()->view_origin();
  impl->set_base(base, origin);
  const Meta* m = meta(self);
  if ((m && m->replay) || self.dtype() != result.dtype() || self.keys() != result.keys())
      [[unlikely]] {
    if (auto f = replay_of(result, self, share(base))) require_meta(result).replay = std::move(f);
  }
}

void note_view(const std::vector<Tensor>& results, const Tensor& self) {
  for (const Tensor& t : results) note_view(t, self, true);
}

void set_view_history(const Tensor& result, const IntrusivePtr<Node>& node, const Tensor& self,
                      bool several) {
  set_history(result, node);
  note_view(result, self, several);
}

void set_view_history(const std::vector<Tensor>& results, const IntrusivePtr<Node>& node,
                      const Tensor& self) {
  for (const Tensor& t : results) set_view_history(t, node, self, true);
}

Tensor replay(const Tensor& view, const Tensor& base) {
  const Meta* m = meta(view);
  if (m && m->replay) return (*m->replay)(base);
  return window_in(view, view.impl()->base()->offset()).of(base);
}

namespace {
// Held while a view's history is put in place: several threads may ask for it at once.
std::mutex refresh_mutex;
}  // namespace

void refresh_history(const Tensor& view) {
  TensorImpl* impl = view.impl();
  const uint32_t now = impl->version();
  const Tensor base = share(impl->base());
  const Meta* m = meta(view);
  if (!(m && m->grad_fn) && !base.requires_grad()) return;
  check_view_origin(view, true);
  IntrusivePtr<Node> node;
  uint32_t output_nr = 0;
  {
    const RecordAgain guard;
    Tensor again = replay(view, base);
    if (again.is_same(base))
      again = ops::as_strided(base, base.sizes(), base.strides(), base.storage_offset());
    Edge edge = gradient_edge(again);
    node = std::move(edge.node);
    output_nr = edge.output_nr;
  }
  const std::lock_guard lock(refresh_mutex);
  set_gradient_edge(view, std::move(node), output_nr);
  impl->set_view_version(now);
}

void WindowChange::done(const IntrusivePtr<Node>& node) {
  if (Meta* m = meta(self_); m && m->replay)
    m->replay = std::make_shared<const ViewReplay>(
        [before = m->replay, last = window_in(self_, offset_)](const Tensor& whole) {
          return last.of((*before)(whole));
        });
  if (!node) return;
  // The base's history knows nothing of the window; the view's own is made anew from it.
  if (self_.impl()->base())
    refresh_history(self_);
  else
    set_gradient_edge(self_, node, node->add_output(self_));
}

void check_view_origin(const Tensor& view, bool indirect) {
  const ViewOrigin origin = view.impl()->view_origin();
  if (origin == ViewOrigin::Recorded) return;
  const char* written = indirect
                            ? " and its base or another view of its base has been modified inplace"
                            : " and is being modified inplace";
  const auto ambiguous = [&](const char* mode, const char* block, const char* where) {
    raise(ErrorKind::Runtime,
          str("A view was created in ", mode, written, where,
              ". Given that this use case is ambiguous and error-prone, it is forbidden. You can "
              "clarify your code by moving both the view and the inplace either both inside the ",
              block,
              " block (if you don't want the inplace to be tracked) or both outside (if you want "
              "the inplace to be tracked)."));
  };
  if (origin == ViewOrigin::NoGrad) ambiguous("no_grad mode", "no_grad", " with grad mode enabled");
  if (origin == ViewOrigin::Inference)
    ambiguous("inference mode", "inference_mode", " in normal mode");
  const Meta* m = meta(view);
  const std::string made_by =
      m && m->grad_fn ? str("Output ", m->output_nr, " of ", m->grad_fn->name()) : "This tensor";
  raise(ErrorKind::Runtime,
        str(made_by, " is a view", written, ". ",
            origin == ViewOrigin::MultiOutput
                ? "This view is the output of a function that returns multiple views. Such "
                  "functions do not allow the output views to be modified inplace. You should "
                  "replace the inplace operation by an out-of-place one."
                : "This view was created inside a custom Function (or because an input was "
                  "returned as-is) and the autograd logic to handle view+inplace would override "
                  "the custom backward associated with the custom Function, leading to incorrect "
                  "gradients. This behavior is forbidden. You can fix this by cloning the output "
                  "of the custom Function."));
}

// ---- CopySlices ---------------------------------------------------------------------------------

CopySlices::CopySlices(const Tensor& base, const Tensor& view, IntrusivePtr<Node> inner)
    : base_sizes_(copy(base.sizes())),
      base_strides_(copy(base.strides())),
      view_sizes_(copy(view.sizes())),
      view_strides_(copy(view.strides())),
      base_offset_(base.storage_offset()),
      view_offset_(view.storage_offset()),
      inner_(std::move(inner)) {
  if (const Meta* m = meta(view)) replay_ = m->replay;
  add_edge(gradient_edge(base));
  const EdgeList& edges = inner_->edges();
  for (size_t i = 1; i < edges.size(); ++i) add_edge(edges[i]);
  inner_->set_outer(this);
}

Tensor CopySlices::view_of(const Tensor& base) const {
  if (replay_) return (*replay_)(base);
  return Window{view_sizes_, view_strides_, view_offset_ - base_offset_}.of(base);
}

void CopySlices::apply(std::span<Tensor> grads, std::span<Tensor> results) {
  check_not_released();
  if (!grads[0].defined()) return;
  // A gradient of its own with the base's geometry, so that the view's window can be cut from it.
  int64_t low = 0;
  int64_t high = 0;
  for (size_t i = 0; i < base_sizes_.size(); ++i) {
    const int64_t reach = std::max<int64_t>(base_sizes_[i] - 1, 0) * base_strides_[i];
    (reach < 0 ? low : high) += reach;
  }
  const Tensor& grad = grads[0];
  Tensor whole;
  if (transforms::is_batched(grad)) [[unlikely]] {
    whole = ops::as_strided(ops::new_zeros(grad, Sizes{high - low + 1}), base_sizes_, base_strides_,
                            -low);
  } else {
    whole = empty_contiguous({high - low + 1}, grad.dtype(), grad.device());
    zero_bytes(whole);
    whole.impl()->set_window(base_sizes_, base_strides_, -low);
  }
  ops::copy_(whole, grad);
  const Tensor part = view_of(whole);
  std::vector<Tensor> inner_grads{ops::clone(part)};
  std::vector<Tensor> inner_results(inner_->edges().size());
  inner_->apply(inner_grads, inner_results);
  if (should_compute(0)) {
    if (inner_results[0].defined())
      ops::copy_(part, inner_results[0]);
    else
      ops::zero_(part);
    results[0] = std::move(whole);
  }
  for (size_t i = 1; i < inner_results.size(); ++i) results[i] = std::move(inner_results[i]);
}

void CopySlices::release_saved() {
  mark_released();
  inner_->release_saved();
}

Tensor CopySlices::view_of_result(const Tensor& values) {
  Tensor whole = alias_window(values, base_sizes_, base_strides_, base_offset_);
  if (replay_) {
    // The bytes are read as the base's type: the window is the base's.
    whole.impl()->set_dtype(output(0).dtype);
    whole.impl()->set_window(base_sizes_, base_strides_, base_offset_);
  }
  whole.impl()->set_keys(strided_keys(values.device().type));
  require_meta(whole).set_edge(IntrusivePtr<Node>::share(this), 0);
  return view_of(whole);
}

}  // namespace lamina::autograd

#include "lamina/kernels/generated_support.h"

#include "lamina/autograd/variable.h"
#include "lamina/dispatch/operator.h"
#include "lamina/ops/clone.h"
#include "lamina/ops/copy.h"
#include "lamina/ops/resolve_conj.h"
#include "lamina/ops/resolve_neg.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/promotion.h"

namespace lamina {

Target::Target(const Tensor& out, const ResultMeta& meta,
               std::initializer_list<const Tensor*> inputs, bool inplace, const char* op)
    : out_(out) {
  check_no_internal_overlap(out, op);
  if (inplace)
    prepare_inplace(out, meta.sizes, meta.dtype, op);
  else
    prepare_out(out, meta.sizes, meta.dtype, meta.device, op);
  bool direct = out.dtype() == meta.dtype && out.is_contiguous();
  for (const Tensor* t : inputs) direct = direct && !(t->defined() && may_share_bytes(out, *t));
  work_ = direct ? out : make_result(meta);
}

void Target::finish() const {
  if (!work_.is_same(out_)) copy_values(out_, work_);
}

namespace {
void check_readable(const Tensor& t, const char* op) {
  LAMINA_CHECK(!t.defined() || !t.is_meta(), op,
               ": Expected all tensors to be on the same device, but found at least two devices, "
               "meta and cpu; got ",
               t);
}
}  // namespace

void check_readable(std::initializer_list<const Tensor*> tensors, const char* op) {
  for (const Tensor* t : tensors) check_readable(*t, op);
}
void check_readable(TensorList tensors, const char* op) {
  for (const Tensor& t : tensors) check_readable(t, op);
}

void write_result(const Tensor& out, const Tensor& result, const char* op) {
  if (autograd::recording(out)) autograd::raise_out_recorded(op);
  check_no_internal_overlap(out, op);
  prepare_out(out, result.sizes(), result.dtype(), result.device(), op);
  // A composite may return a view that is lazily conjugated.
  copy_values(out, ops::resolve_neg(ops::resolve_conj(result)));
}

Tensor write_inplace(const Tensor& self, const Tensor& result, const char* op) {
  prepare_inplace(self, result.sizes(), result.dtype(), op);
  return ops::copy_(self, result);
}

Tensor value_before_write(const Tensor& self) {
  return autograd::recording(self) ? ops::clone(self) : self;
}

Tensor copy_of(const Tensor& t) {
  Tensor out = empty_preserving(t, t.dtype());
  copy_values(out, t);
  return out;
}

void take_window(const Tensor& self, const Tensor& view) {
  self.impl()->set_window(view.sizes(), view.strides(), view.storage_offset());
}

bool expandable1(const Tensor& t, int64_t a) { return is_expandable(t.sizes(), {a}); }
bool expandable2(const Tensor& t, int64_t a, int64_t b) { return is_expandable(t.sizes(), {a, b}); }
bool expandable3(const Tensor& t, int64_t a, int64_t b, int64_t c) {
  return is_expandable(t.sizes(), {a, b, c});
}

namespace {
// A tensor without dimensions counts as one with a dimension of size 1.
bool within(const Tensor& index, const Tensor& t, int64_t free_dim) {
  const int64_t dims = std::max<int64_t>(index.dim(), 1);
  if (dims != std::max<int64_t>(t.dim(), 1)) return false;
  for (int64_t i = 0; i < dims; ++i)
    if (i != free_dim && (index.dim() ? index.size(i) : 1) > (t.dim() ? t.size(i) : 1))
      return false;
  return true;
}
}  // namespace

bool scatter_value_fits(const Tensor& self, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim(dim, self.dim(), "scatter");
  return index.numel() == 0 || within(index, self, d);
}
bool scatter_fits(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return scatter_value_fits(self, dim, index) && (index.numel() == 0 || within(index, src, -1));
}

}  // namespace lamina

#include "lamina/kernels/generated_support.h"

#include "lamina/dispatch/operator.h"
#include "lamina/ops/copy.h"
#include "lamina/shape/promotion.h"

namespace lamina {

Target::Target(const Tensor& out, const ResultMeta& meta, std::initializer_list<const Tensor*> inputs, bool inplace,
               const char* op)
    : out_(out) {
  if (inplace)
    prepare_inplace(out, meta.sizes, meta.dtype, op);
  else
    prepare_out(out, meta.sizes, meta.dtype, meta.device, op);
  check_no_internal_overlap(out, op);
  bool direct = out.dtype() == meta.dtype && out.is_contiguous();
  for (const Tensor* t : inputs) direct = direct && !(t->defined() && may_share_bytes(out, *t));
  work_ = direct ? out : make_result(meta);
}

void Target::finish() const {
  if (!work_.is_same(out_)) copy_values(out_, work_);
  out_.impl()->bump_version();
}

void write_result(const Tensor& out, const Tensor& result, const char* op) {
  prepare_out(out, result.sizes(), result.dtype(), result.device(), op);
  check_no_internal_overlap(out, op);
  copy_values(out, result);
  out.impl()->bump_version();
}

Tensor write_inplace(const Tensor& self, const Tensor& result, const char* op) {
  prepare_inplace(self, result.sizes(), result.dtype(), op);
  return ops::copy_(self, result);
}

Tensor copy_of(const Tensor& t) {
  Tensor out = empty_preserving(t, t.dtype());
  copy_values(out, t);
  return out;
}

void take_window(const Tensor& self, const Tensor& view) {
  self.impl()->set_window(view.sizes(), view.strides(), view.storage_offset());
}

}  // namespace lamina

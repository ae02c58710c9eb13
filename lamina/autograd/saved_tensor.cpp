#include "lamina/autograd/saved_tensor.h"

#include "lamina/core/error.h"

namespace lamina::autograd {

SavedTensor SavedTensor::result(const Tensor& t, uint32_t output_nr) {
  SavedTensor s;
  s.tensor_ = detach(t);
  s.version_ = t.impl()->version();
  s.output_nr_ = static_cast<int32_t>(output_nr);
  return s;
}

Tensor SavedTensor::unpack(Node* owner) const {
  if (!tensor_.defined()) return {};
  const uint32_t now = tensor_.impl()->version();
  if (now != version_) [[unlikely]] {
    std::string origin = "a leaf or an input without history";
    if (output_nr_ >= 0)
      origin = str("output ", output_nr_, " of ", owner->name());
    else if (const auto fn = grad_fn(tensor_))
      origin = str("output ", meta(tensor_)->output_nr, " of ", fn->name());
    raise(ErrorKind::Runtime,
          str(owner->name(),
              ": one of the variables needed for gradient computation has been modified by an "
              "inplace "
              "operation: [",
              tensor_, "], which is ", origin, " and was saved by ", owner->name(),
              ", is at version ", now, "; expected version ", version_,
              " instead. Hint: write out of place, or clone the tensor before it is "
              "written."));
  }
  if (output_nr_ < 0 || !grad_enabled()) return tensor_;
  Tensor t = detach(tensor_);
  Meta& m = require_meta(t);
  m.grad_fn = IntrusivePtr<Node>::share(owner);
  m.output_nr = static_cast<uint32_t>(output_nr_);
  m.has_grad_fn = true;
  return t;
}

}  // namespace lamina::autograd

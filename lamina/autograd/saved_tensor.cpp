#include "lamina/autograd/saved_tensor.h"

#include "lamina/autograd/forward.h"
#include "lamina/autograd/view.h"
#include "lamina/core/error.h"
#include "lamina/dispatch/local_state.h"

namespace lamina::autograd {

constinit thread_local Packer* t_packer = nullptr;

namespace {
constinit thread_local bool t_saving = false;
}

const Node* saving_node() { return t_saving ? Node::newest() : nullptr; }

SavedTensor SavedTensor::result(const Tensor& t, uint32_t output_nr) {
  SavedTensor s;
  s.tensor_ = forward::detached(t);
  s.version_ = t.impl()->version();
  s.output_nr_ = static_cast<int32_t>(output_nr);
  if (t_packer) [[unlikely]]
    s.save_slowly();
  return s;
}

void SavedTensor::save_slowly() {
  LAMINA_CHECK(!tensor_.impl()->is_inference(),
               "Inference tensors cannot be saved for backward. Please do not use Tensors created "
               "in inference mode in computation tracked by autograd. To work around this, you "
               "can make a clone to get a normal tensor and use it in autograd, or use "
               "`torch.no_grad()` instead of `torch.inference_mode()`.");
  if (!t_packer) return;
  struct Saving {
    Saving() { t_saving = true; }
    ~Saving() { t_saving = false; }
  } saving;
  pack_with(*t_packer);
}

void SavedTensor::pack_with(Packer& packer) {
  LAMINA_CHECK(tensor_.defined() && !packed_,
               "register_hooks: hooks are registered once, on a saved tensor that is there");
  Edge edge;
  if (output_nr_ < 0) edge = gradient_edge(tensor_);
  // The hook runs outside of recording; what it computes belongs to no graph.
  const NoGrad guard;
  auto packed =
      packer.pack(output_nr_ < 0 && is_leaf(tensor_) ? tensor_ : forward::detached(tensor_));
  if (!packed) return;
  packed_ = std::make_shared<PackedTensor>(PackedTensor{std::move(packed), std::move(edge)});
  tensor_ = {};
}

void SavedTensor::check_version(const Node& owner, const Tensor& t) const {
  const uint32_t now = t.impl()->version();
  if (now == version_) [[likely]]
    return;
  std::string origin = "a leaf or an input without history";
  if (output_nr_ >= 0) {
    origin = str("output ", output_nr_, " of ", owner.name());
  } else if (const Meta* m = meta(t); m && m->grad_fn) {
    origin = str("output ", m->output_nr, " of ", m->grad_fn->name());
  }
  const std::string line = line_that_wrote(t, version_);
  raise(ErrorKind::Runtime,
        str(owner.name(),
            ": one of the variables needed for gradient computation has been modified by an "
            "inplace operation: [",
            t, "], which is ", origin, " and was saved by ", owner.name(), ", is at version ", now,
            "; expected version ", version_, " instead. ",
            line.empty()
                ? std::string("Hint: enable anomaly detection to find the line that wrote it, "
                              "with torch.autograd.set_detect_anomaly(True, check_nan=False)")
                : str("It was written here:\n", line)));
}

Tensor SavedTensor::with_history(const Tensor& values, Edge edge, Node* owner) const {
  if (output_nr_ >= 0) {
    if (owner->outer()) {
      const RecordAgain guard;
      const Tensor t = static_cast<CopySlices*>(owner->outer())->view_of_result(values);
      forward::share_tangents(values, t);
      return t;
    }
    edge = {IntrusivePtr<Node>::share(owner), static_cast<uint32_t>(output_nr_)};
  }
  if (!edge.node) return values;
  Tensor t = forward::detached(values);
  require_meta(t).set_edge(std::move(edge.node), edge.output_nr);
  return t;
}

Tensor SavedTensor::unpack(Node* owner) const {
  Tensor tensor;
  std::shared_ptr<PackedTensor> packed;
  {
    const Node::Lock lock(*owner);
    tensor = tensor_;
    packed = packed_;
  }
  if (tensor.defined()) [[likely]] {
    check_version(*owner, tensor);
    return output_nr_ < 0 || !grad_enabled() ? tensor : with_history(tensor, {}, owner);
  }
  owner->check_not_released();
  if (!packed) return {};
  tensor = packed->packed->unpack();
  LAMINA_CHECK(tensor.defined(), "saved_tensors_hooks: the unpack hook has to give a tensor");
  return with_history(tensor, packed->edge, owner);
}

}  // namespace lamina::autograd

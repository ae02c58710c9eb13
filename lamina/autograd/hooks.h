// What a user may hang on tensors and nodes: functions that see, and may replace, gradients.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "lamina/core/tensor.h"

namespace lamina::autograd {

// Something that lives with a node or a tensor. border/ keeps Python objects this way.
class Attachment {
 public:
  Attachment() = default;
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  virtual ~Attachment() = default;
  // The Python object that it owns, for the garbage collector; null where there is none.
  virtual void* python_object() const { return nullptr; }
};

// Sees the gradient of one tensor. It may replace it; the engine checks the replacement.
class TensorHook : public Attachment {
 public:
  virtual void run(Tensor& grad) = 0;
};
// Sees the gradients that flow into a node, before it runs.
class NodePreHook : public Attachment {
 public:
  virtual void run(std::vector<Tensor>& grads) = 0;
};
// Sees what a node has made of them, after it ran.
class NodePostHook : public Attachment {
 public:
  virtual void run(std::vector<Tensor>& results, const std::vector<Tensor>& grads) = 0;
};

// Guards the lists of every NodeHooks: hooks are registered by one thread while another runs them.
// Held for copying or adding an item; nothing of the user's runs inside.
extern std::mutex hooks_mutex;

struct NodeHooks {
  struct OfResult {
    uint32_t number;
    std::shared_ptr<TensorHook> hook;
  };
  std::vector<OfResult> tensor;       // in order of registration
  std::vector<OfResult> retain_grad;  // after those
  std::vector<std::shared_ptr<NodePreHook>> before;
  std::vector<std::shared_ptr<NodePostHook>> after;
  std::shared_ptr<Attachment> metadata;  // what anomaly mode and users note about the node
};

}  // namespace lamina::autograd

// A tensor kept for backward. Its version is checked when it is used again.
#pragma once

#include <memory>
#include <string>

#include "lamina/autograd/variable.h"
#include "lamina/dispatch/value.h"

namespace lamina::autograd {

// What a pack hook has made of a tensor (saved_tensors_hooks): gives the tensor back.
class Packed : public Attachment {
 public:
  virtual Tensor unpack() = 0;
};
// The pack hook in force on this thread; null for none.
class Packer {
 public:
  virtual ~Packer() = default;
  virtual std::unique_ptr<Packed> pack(const Tensor& t) = 0;
};
extern __attribute__((tls_model("initial-exec"))) constinit thread_local Packer* t_packer;
// The node that is being recorded, while a pack hook runs for what it saves; null otherwise.
const Node* saving_node();

class SavedTensor {
 public:
  SavedTensor() = default;
  // An input of the operator.
  explicit SavedTensor(const Tensor& t)
      : tensor_(t), version_(t.defined() ? t.impl()->version() : 0) {
    if (t.defined() && (t_packer || t.impl()->is_inference())) [[unlikely]]
      save_slowly();
  }
  // A result: kept without its history, which would be a cycle; `node` is put back on use.
  static SavedTensor result(const Tensor& t, uint32_t output_nr);

  // Raises Runtime where the owner has dropped it, or the tensor was written since.
  Tensor unpack(Node* owner) const;
  void reset(const Node& owner) {
    std::shared_ptr<PackedTensor> packed;
    Tensor tensor;
    const Node::Lock lock(owner);
    std::swap(tensor, tensor_);
    packed.swap(packed_);
  }
  bool defined() const { return tensor_.defined() || packed_; }
  // What is kept, unchecked; undefined while packed.
  const Tensor& kept() const { return tensor_; }
  const Packed* packed() const { return packed_ ? packed_->packed.get() : nullptr; }
  const Node* packed_edge() const { return packed_ ? packed_->edge.node.get() : nullptr; }
  // Packs what is kept already (SavedTensor.register_hooks).
  void pack_with(Packer& packer);

 private:
  struct PackedTensor {
    std::unique_ptr<Packed> packed;
    Edge edge;  // of an input: where its gradient goes
  };
  void save_slowly();
  void check_version(const Node& owner, const Tensor& now) const;
  Tensor with_history(const Tensor& values, Edge edge, Node* owner) const;

  Tensor tensor_;
  std::shared_ptr<PackedTensor> packed_;
  uint32_t version_ = 0;
  int32_t output_nr_ = -1;  // of the owning node; -1 for an input
};

class SavedTensorList {
 public:
  SavedTensorList() = default;
  explicit SavedTensorList(TensorList list) {
    for (const Tensor& t : list) items_.emplace_back(t);
  }
  std::vector<Tensor> unpack(Node* owner) const {
    std::vector<Tensor> out;
    for (const SavedTensor& s : items_) out.push_back(s.unpack(owner));
    return out;
  }
  void reset(const Node& owner) {
    for (SavedTensor& s : items_) s.reset(owner);
  }
  const std::vector<SavedTensor>& items() const { return items_; }
  std::vector<SavedTensor>& items() { return items_; }

 private:
  std::vector<SavedTensor> items_;
};

// Walks over what a node keeps.
class SavedReader {
 public:
  virtual ~SavedReader() = default;
  virtual void tensor(const char* name, SavedTensor& t) = 0;
  virtual void tensors(const char* name, SavedTensorList& list) = 0;
  virtual void value(const char* name, const dispatch::Value& v) = 0;

  template <class T>
  void value(const char* name, const std::optional<T>& v) {
    if (v)
      argument(name, *v);
    else
      value(name, dispatch::Value());
  }
  template <class T>
  void argument(const char* name, const T& v) {
    if constexpr (requires { v.has_value(); })
      value(name, v);
    else if constexpr (std::is_same_v<T, Sizes>)
      value(name, dispatch::Value(std::vector<int64_t>(v.begin(), v.end())));
    else if constexpr (std::is_constructible_v<dispatch::Value, const T&>)
      value(name, dispatch::Value(v));
  }
};

}  // namespace lamina::autograd

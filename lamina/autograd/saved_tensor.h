// A tensor kept for backward. Its version is checked when it is used again.
#pragma once

#include "lamina/autograd/variable.h"

namespace lamina::autograd {

class SavedTensor {
 public:
  SavedTensor() = default;
  // An input of the operator.
  explicit SavedTensor(const Tensor& t)
      : tensor_(t), version_(t.defined() ? t.impl()->version() : 0) {}
  // A result: kept without its history, which would be a cycle; `node` is put back on use.
  static SavedTensor result(const Tensor& t, uint32_t output_nr);

  Tensor unpack(Node* owner) const;
  void reset() { tensor_ = {}; }
  bool defined() const { return tensor_.defined(); }

 private:
  Tensor tensor_;
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
  void reset() { items_.clear(); }

 private:
  std::vector<SavedTensor> items_;
};

}  // namespace lamina::autograd

// Differentiable views: who their base is, how they are made again, and writes through them.
#pragma once

#include "lamina/autograd/saved_tensor.h"

namespace lamina::autograd {

// `result` is a view of `self`: it belongs to the family of self's base. `several`: one of many
// views that the call made.
void note_view(const Tensor& result, const Tensor& self, bool several = false);
void note_view(const std::vector<Tensor>& results, const Tensor& self);
// The same for a recorded call.
void set_view_history(const Tensor& result, const IntrusivePtr<Node>& node, const Tensor& self,
                      bool several = false);
void set_view_history(const std::vector<Tensor>& results, const IntrusivePtr<Node>& node,
                      const Tensor& self);

// The view `view`, made again from `base`, which has the geometry of its base.
Tensor replay(const Tensor& view, const Tensor& base);

// The view's base has been written since the view was made, or since this was asked last: its
// history becomes that of the base, seen through the view.
void refresh_history(const Tensor& view);

// Raises Runtime where a view must not take part in a recorded write: made under no_grad, under
// inference_mode, or as one of several. `indirect`: its base, or another view of it, is written.
void check_view_origin(const Tensor& view, bool indirect);

// Around an in-place view operator (transpose_): the window of `self` changes, its bytes do not.
class WindowChange {
 public:
  explicit WindowChange(const Tensor& self) : self_(self), offset_(self.storage_offset()) {}
  // `node`: the recorded operator, if it is recorded.
  void done(const IntrusivePtr<Node>& node = nullptr);

 private:
  const Tensor& self_;
  int64_t offset_;
};

// A write through a view, recorded: the gradient of the whole base arrives, the inner node sees the
// part that was written, and what it makes of it takes that part's place.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, IntrusivePtr<Node> inner);
  const char* name() const override { return "CopySlices"; }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override;
  void release_saved() override;
  void read_saved(SavedReader& reader) const override { inner_->read_saved(reader); }
  Node* inner() const override { return inner_.get(); }
  // A saved result of the inner node with its history: the view of what this node has made.
  Tensor view_of_result(const Tensor& values);

 private:
  Tensor view_of(const Tensor& base) const;

  Sizes base_sizes_, base_strides_, view_sizes_, view_strides_;
  int64_t base_offset_ = 0;
  int64_t view_offset_ = 0;
  std::shared_ptr<const ViewReplay> replay_;
  IntrusivePtr<Node> inner_;
};

}  // namespace lamina::autograd

// A recorded operator: it turns the gradients of its results into those of its inputs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "lamina/autograd/hooks.h"
#include "lamina/core/block.h"
#include "lamina/core/intrusive_ptr.h"
#include "lamina/core/tensor.h"
#include "lamina/shape/result_meta.h"

namespace lamina::autograd {

class Node;
class SavedTensor;
class SavedTensorList;
class SavedReader;

// Where a gradient goes: result number `output_nr` of `node`. A null node wants none.
struct Edge {
  IntrusivePtr<Node> node;
  uint32_t output_nr = 0;
};

// Nearly every operator has at most two inputs with gradients: those edges live in the node.
class EdgeList {
 public:
  EdgeList() = default;
  EdgeList(const EdgeList&) = delete;
  EdgeList& operator=(const EdgeList&) = delete;
  void push_back(Edge e) {
    if (size_ == capacity_) reserve(2 * capacity_);
    data()[size_++] = std::move(e);
  }
  void reserve(size_t n);
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Edge& operator[](size_t i) const { return begin()[i]; }
  const Edge* begin() const { return more_ ? more_.get() : few_; }
  const Edge* end() const { return begin() + size_; }

 private:
  static constexpr uint32_t kInline = 2;
  Edge* data() { return more_ ? more_.get() : few_; }
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
  Edge few_[kInline];
  std::unique_ptr<Edge[]> more_;
};

class Node : public RefCounted {
 public:
  Node();
  ~Node() override;
  static void* operator new(size_t bytes) { return allocate_block(bytes); }
  static void operator delete(void* memory, size_t bytes) noexcept { free_block(memory, bytes); }

  virtual const char* name() const = 0;
  // grads: one for each result of the forward operator, undefined ones allowed. results: one for
  // each edge; what should_compute() denies may stay undefined.
  virtual void apply(std::span<Tensor> grads, std::span<Tensor> results) = 0;
  // Drops what was saved; a second run then raises.
  virtual void release_saved() { mark_released(); }
  // Shows what the node keeps, by name.
  virtual void read_saved(SavedReader&) const {}
  // The Python object that defines the node (autograd.Function); null for others.
  virtual void* python_object() const { return nullptr; }
  // Gradients that a user's code has made are checked against the inputs of the forward call.
  virtual bool is_user_defined() const { return false; }
  // Hooks of the leaf, for the node that fills its .grad.
  virtual std::vector<NodeHooks::OfResult> leaf_hooks() const { return {}; }

  uint64_t sequence() const { return sequence_; }
  void set_sequence(uint64_t n) { sequence_ = n; }
  const EdgeList& edges() const { return edges_; }
  void add_edge(Edge e) { edges_.push_back(std::move(e)); }
  bool has_edge(size_t edge) const { return edge < edges_.size() && edges_[edge].node; }
  // Whether the pass that runs the node wants this gradient. What a call records must not ask it.
  bool should_compute(size_t edge) const {
    return has_edge(edge) && (!t_selective || selected(edges_[edge].node.get()));
  }
  // Announces one more result and tells its number.
  uint32_t add_output(const Tensor& result);
  uint32_t add_output_without_gradient();  // one that is no tensor
  uint32_t num_outputs() const { return num_outputs_; }
  const ResultMeta& output(uint32_t i) const { return i == 0 ? output_ : more_outputs_[i - 1]; }
  // Zeros in the form of result `i`, for gradients that did not arrive.
  Tensor zeros_like_output(uint32_t i) const;

  NodeHooks& hooks();  // made at first use
  NodeHooks* hooks_if_any() const { return hooks_.load(std::memory_order_acquire); }

  bool released() const { return released_.load(std::memory_order_acquire); }
  // Raises Runtime where what the node has saved is gone.
  void check_not_released() const;

  // Guards what several backward passes at once may read and drop: held for a few instructions.
  class Lock {
   public:
    explicit Lock(const Node& n) : node_(n) {
      while (node_.busy_.test_and_set(std::memory_order_acquire)) let_others_run();
    }
    ~Lock() { node_.busy_.clear(std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    static void let_others_run();
    const Node& node_;
  };

  // The one Python object of this node while it has one; border/ keeps it, under the GIL.
  void* wrapper() const { return wrapper_; }
  void set_wrapper(void* object) { wrapper_ = object; }

  // A node inside another one, for a write through a view: the results it saved belong to the
  // view's base after the write, which `outer` made. Null otherwise.
  virtual Node* inner() const { return nullptr; }
  Node* outer() const { return outer_; }
  void set_outer(Node* n) { outer_ = n; }

  // The node made last on this thread that still lives, and is no leaf's: while an operator is
  // being recorded, its own. For naming what saves a tensor.
  static Node* newest();
  void set_newest();

  // The engine's place for a running pass: pass number and index; 0 while no pass uses the node.
  std::atomic<uint64_t>& pass_slot() const { return pass_slot_; }

 protected:
  void mark_released() { released_.store(true, std::memory_order_release); }
  void destroy() const noexcept override;  // iterative: a chain of a million nodes must not recurse

 private:
  friend class Pass;
  static bool selected(const Node* node);  // engine.cpp
  // Set while the running pass wants some gradients only.
  static __attribute__((tls_model("initial-exec"))) constinit thread_local bool t_selective;

  uint64_t sequence_;
  mutable std::atomic<uint64_t> pass_slot_{0};
  EdgeList edges_;
  uint32_t num_outputs_ = 0;
  std::atomic<bool> released_{false};
  mutable std::atomic_flag busy_;
  std::atomic<NodeHooks*> hooks_{nullptr};  // owned
  void* wrapper_ = nullptr;
  Node* outer_ = nullptr;
  ResultMeta output_;
  std::vector<ResultMeta> more_outputs_;
};

}  // namespace lamina::autograd

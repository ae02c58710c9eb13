// What Python's garbage collector must know of recorded graphs.
//
// Tensors and nodes count their references themselves; the collector sees only Python objects. So
// that a cycle through both is found (a hook that closes over the loss, a gradient with a history
// that leads back to its leaf), a tensor object reports every Python object that is owned,
// directly or along the graph, by things which nothing else keeps alive.
#include <unordered_map>
#include <vector>

#include "lamina/autograd/accumulate_grad.h"
#include "lamina/border/autograd.h"
#include "lamina/border/hooks.h"

namespace lamina::border {

namespace {

// Everything reachable from a root on the C++ side, with the references found on the way.
class OwnedGraph {
 public:
  void add(const TensorImpl* t) {
    if (t) add(t, Kind::Tensor, t->use_count(), nullptr);
  }
  void add(const autograd::Node* n) {
    if (n) add(n, Kind::Node, n->use_count(), nullptr);
  }
  // Objects that are kept by shared_ptr count their owners there.
  void add(const autograd::Attachment* a, long uses) {
    if (a) add(a, Kind::Attachment, static_cast<uint32_t>(uses), a);
  }

  // The root's owner is owned by the root: its reference is no reference from outside.
  void forget_owner() { items_[0].found = 0; }

  // True where every reference to the root comes from its owner or from what the root itself keeps
  // alive: then everything that is not marked as held outside belongs to the owner.
  bool explore() {
    for (size_t i = 0; i < items_.size(); ++i) children(items_[i]);
    std::vector<size_t> held;  // by something outside
    for (size_t i = 0; i < items_.size(); ++i)
      if (items_[i].found < items_[i].uses) held.push_back(i);
    marking_ = &held;
    for (size_t k = 0; k < held.size(); ++k) {
      if (items_[held[k]].outside) continue;
      items_[held[k]].outside = true;
      children(items_[held[k]]);
    }
    marking_ = nullptr;
    return !items_.empty() && !items_[0].outside;
  }

  int visit(visitproc visit, void* arg) const {
    for (const Item& item : items_) {
      if (item.outside) continue;
      PyObject* object = nullptr;
      if (item.kind == Kind::Tensor) {
        const auto* t = static_cast<const TensorImpl*>(item.key);
        if (t->owns_pyobject()) object = static_cast<PyObject*>(t->pyobject());
      } else if (item.kind == Kind::Node) {
        object =
            static_cast<PyObject*>(static_cast<const autograd::Node*>(item.key)->python_object());
      } else {
        object = static_cast<PyObject*>(item.attachment->python_object());
      }
      Py_VISIT(object);
    }
    return 0;
  }

 private:
  enum class Kind : uint8_t { Tensor, Node, Attachment };
  struct Item {
    const void* key;
    const autograd::Attachment* attachment;
    uint32_t found, uses;
    Kind kind;
    bool outside;
  };

  void add(const void* key, Kind kind, uint32_t uses, const autograd::Attachment* a) {
    const auto [at, fresh] = places_.try_emplace(key, items_.size());
    if (marking_) {
      if (!items_[at->second].outside) marking_->push_back(at->second);
      return;
    }
    if (fresh) items_.push_back({key, a, 0, uses, kind, false});
    ++items_[at->second].found;
  }

  class Saved final : public autograd::SavedReader {
   public:
    explicit Saved(OwnedGraph& graph) : graph_(graph) {}
    void tensor(const char*, autograd::SavedTensor& t) override {
      graph_.add(t.kept().impl());
      graph_.add(t.packed_edge());
      graph_.add(t.packed(), 1);
    }
    void tensors(const char* name, autograd::SavedTensorList& list) override {
      for (autograd::SavedTensor& t : list.items()) tensor(name, t);
    }
    void value(const char*, const dispatch::Value& v) override {
      if (const auto* t = std::get_if<Tensor>(&v); t && t->defined()) graph_.add(t->impl());
    }

   private:
    OwnedGraph& graph_;
  };

  void hooks(const autograd::NodeHooks* h) {
    if (!h) return;
    for (const auto& item : h->tensor) add(item.hook.get(), item.hook.use_count());
    for (const auto& item : h->before) add(item.get(), item.use_count());
    for (const auto& item : h->after) add(item.get(), item.use_count());
    add(h->metadata.get(), h->metadata.use_count());
  }

  void children(const Item item) {
    if (item.kind == Kind::Tensor) {
      const auto* t = static_cast<const TensorImpl*>(item.key);
      add(t->base());
      const auto* m = static_cast<const autograd::Meta*>(t->autograd());
      if (!m) return;
      add(m->grad.peek().impl());
      add(m->grad_fn.get());
      add(m->python_hooks.get(), m->python_hooks.use_count());
      add(m->post_accumulate.get(), m->post_accumulate.use_count());
      hooks(m->leaf_hooks.get());
    } else if (item.kind == Kind::Node) {
      const auto* n = static_cast<const autograd::Node*>(item.key);
      for (const autograd::Edge& e : n->edges()) add(e.node.get());
      hooks(n->hooks_if_any());
      if (const autograd::Node* inner = n->inner()) {
        add(inner);
      } else if (const auto* leaf = dynamic_cast<const autograd::AccumulateGrad*>(n)) {
        add(leaf->variable().impl());
      } else {
        Saved reader(*this);
        n->read_saved(reader);
      }
    }
  }

  std::vector<Item> items_;
  std::unordered_map<const void*, size_t> places_;
  std::vector<size_t>* marking_ = nullptr;
};

// A gradient with a history may lead back to the tensor it belongs to.
bool grad_has_history(const autograd::Meta& m) {
  const Tensor& grad = m.grad.peek();
  return grad.defined() && grad.impl()->autograd() && autograd::meta(grad)->grad_fn;
}

}  // namespace

bool outlives_python(const Tensor& t) {
  const autograd::Meta* m = autograd::meta(t);
  return m && grad_has_history(*m);
}

int traverse_autograd(const Tensor& t, visitproc visit, void* arg) {
  // What another thread may be changing is left for the next collection.
  if (ReleaseGil::anyone_outside()) return 0;
  const TensorImpl* impl = t.impl();
  const autograd::Meta* m = autograd::meta(t);
  const bool owned = impl->owns_pyobject();
  if (!m && !impl->base()) return 0;
  const bool look =
      (m && (m->grad_fn || m->grad.peek().defined() || m->python_hooks || m->post_accumulate)) ||
      impl->base();
  if (!look) return 0;
  if (!autograd_holds_python() && !(m && grad_has_history(*m))) {
    // The usual case: only a gradient's or a base's object can be ours.
    const auto single = [&](const TensorImpl* other) {
      if (other && other->owns_pyobject() && other->use_count() == 1 && impl->use_count() == 1 &&
          !owned)
        Py_VISIT(static_cast<PyObject*>(other->pyobject()));
      return 0;
    };
    if (const int r = m ? single(m->grad.peek().impl()) : 0) return r;
    return single(impl->base());
  }
  OwnedGraph graph;
  graph.add(impl);
  if (owned) graph.forget_owner();
  if (!graph.explore()) return 0;
  return graph.visit(visit, arg);
}

int traverse_node(const autograd::Node& node, visitproc visit, void* arg) {
  if (!autograd_holds_python() || ReleaseGil::anyone_outside()) return 0;
  OwnedGraph graph;
  graph.add(&node);
  return graph.explore() ? graph.visit(visit, arg) : 0;
}

void clear_autograd(const Tensor& t) {
  autograd::Meta* m = autograd::meta(t);
  if (!m || ReleaseGil::anyone_outside()) return;
  OwnedGraph graph;
  graph.add(t.impl());
  if (t.impl()->owns_pyobject()) graph.forget_owner();
  if (!graph.explore()) return;  // somebody outside still needs its history
  // Taken out first: what dies with them may look at the tensor.
  const Tensor grad = m->grad.exchange({});
  if (t.impl()->owns_pyobject()) return;
  const auto hooks = std::move(m->leaf_hooks);
  const auto python_hooks = std::exchange(m->python_hooks, nullptr);
  const auto post = std::exchange(m->post_accumulate, nullptr);
  if (m->grad_fn) {
    const IntrusivePtr<autograd::Node> node = std::move(m->grad_fn);
    m->grad_fn = nullptr;
    m->has_grad_fn = false;
  }
}

}  // namespace lamina::border

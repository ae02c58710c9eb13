// Python functions where autograd calls back: hooks in dicts, pack and unpack hooks, notes of
// anomaly mode.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lamina/autograd/saved_tensor.h"
#include "lamina/border/tensor_object.h"

namespace lamina::border {

// Keeps the interpreter for this thread; autograd runs without it.
class HoldGil {
 public:
  HoldGil() : state_(PyGILState_Ensure()) {}
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;
  HoldGil& operator=(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

// An owned reference for objects of C++ that may die on any thread, with or without the GIL.
class SharedObject {
 public:
  explicit SharedObject(PyObject* o);  // under the GIL
  SharedObject(SharedObject&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  ~SharedObject();
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

// Whether autograd holds any Python object at all; if not, the garbage collector need not look for
// them.
bool autograd_holds_python();

// Hooks in an ordered dict, which handles remove themselves from: each sees what the one before has
// made of the gradient.
class DictTensorHook final : public autograd::TensorHook {
 public:
  // replaces: what a hook returns takes the gradient's place.
  DictTensorHook(PyObject* dict, bool replaces) : dict_(dict), replaces_(replaces) {}
  void run(Tensor& grad) override;
  void* python_object() const override { return dict_.get(); }

 private:
  SharedObject dict_;
  bool replaces_;
};
class DictPreHook final : public autograd::NodePreHook {
 public:
  explicit DictPreHook(PyObject* dict) : dict_(dict) {}
  void run(std::vector<Tensor>& grads) override;
  void* python_object() const override { return dict_.get(); }

 private:
  SharedObject dict_;
};
class DictPostHook final : public autograd::NodePostHook {
 public:
  explicit DictPostHook(PyObject* dict) : dict_(dict) {}
  void run(std::vector<Tensor>& results, const std::vector<Tensor>& grads) override;
  void* python_object() const override { return dict_.get(); }

 private:
  SharedObject dict_;
};
// Any object that lives with a node.
class ObjectAttachment final : public autograd::Attachment {
 public:
  explicit ObjectAttachment(PyObject* object) : object_(object) {}
  void* python_object() const override { return object_.get(); }

 private:
  SharedObject object_;
};

// A new ordered dict for hooks, and a handle that removes `function` again once it is in there.
Ref new_hook_dict();
PyObject* add_hook(PyObject* dict, PyObject* function);

// The dict of an attachment, made where there is none yet.
template <class Hook, class Base>
PyObject* dict_of(std::vector<std::shared_ptr<Base>>& hooks) {
  for (const auto& h : hooks)
    if (const auto* mine = dynamic_cast<const Hook*>(h.get()))
      return static_cast<PyObject*>(mine->python_object());
  auto made = std::make_shared<Hook>(new_hook_dict().get());
  const std::lock_guard lock(autograd::hooks_mutex);
  hooks.push_back(made);
  return static_cast<PyObject*>(made->python_object());
}

// What pack made of a tensor, for unpack.
class PackedObject final : public autograd::Packed {
 public:
  PackedObject(PyObject* value, PyObject* unpack) : value_(value), unpack_(unpack) {}
  Tensor unpack() override;
  void* python_object() const override { return value_.get(); }

 private:
  SharedObject value_, unpack_;
};
class PythonPacker final : public autograd::Packer {
 public:
  PythonPacker(PyObject* pack, PyObject* unpack) : pack_(pack), unpack_(unpack) {}
  std::unique_ptr<autograd::Packed> pack(const Tensor& t) override;

 private:
  SharedObject pack_, unpack_;
};

extern PyMethodDef hook_functions[];
void connect_anomaly_mode();

}  // namespace lamina::border

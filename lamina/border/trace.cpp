// Gathers the event stream of one thread for explain and the profiler: calls of operators with what
// they were given and gave, nested as they ran, and what kernels, allocator and engine said
// meanwhile.
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lamina/autograd/node.h"
#include "lamina/autograd/saved_tensor.h"
#include "lamina/autograd/variable.h"
#include "lamina/border/operators.h"
#include "lamina/border/wrap.h"
#include "lamina/event/event.h"

namespace lamina::border {

namespace {

using dispatch::Operator;
using dispatch::Stack;
using dispatch::Value;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What is told of a tensor; the tensor itself is not kept alive.
struct TensorNote {
  ScalarType dtype;
  Sizes sizes, strides;
  int64_t offset = 0;
  const void* storage = nullptr;
  int64_t storage_bytes = 0;
  bool requires_grad = false;

  explicit TensorNote(const Tensor& t)
      : dtype(t.dtype()),
        sizes(std::span<const int64_t>(t.sizes())),
        strides(std::span<const int64_t>(t.strides())),
        offset(t.storage_offset()),
        requires_grad(t.requires_grad()) {
    if (t.is_meta() || t.keys().has(DispatchKey::Python)) return;
    // Where the bytes begin, and how many belong to the window.
    storage =
        static_cast<const char*>(t.data()) - offset * static_cast<int64_t>(item_size(t.dtype()));
    storage_bytes = t.numel() * static_cast<int64_t>(item_size(t.dtype()));
  }
};
struct ValueNote {
  std::vector<TensorNote> tensors;
  Value other;  // where there are none
  bool list = false;
};

std::vector<ValueNote> notes_of(const Stack& stack) {
  std::vector<ValueNote> notes;
  notes.reserve(stack.size());
  for (const Value& v : stack) {
    ValueNote note;
    if (const auto* t = std::get_if<Tensor>(&v)) {
      if (t->defined()) note.tensors.emplace_back(*t);
    } else if (const auto* list = std::get_if<std::vector<Tensor>>(&v)) {
      note.list = true;
      for (const Tensor& t : *list)
        if (t.defined()) note.tensors.emplace_back(t);
    } else {
      note.other = v;
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

struct Line {
  Ref code;
  int number = 0;
};
struct SavedNote {
  std::string name;
  TensorNote tensor;
};
struct Refusal {
  const char* candidate;
  const char* reason;
};
struct Chunks {
  int64_t count;
  int threads;
};

struct Record {
  const Operator* op = nullptr;  // null for a stretch of work with a name
  std::string kind, name;
  KeySet keys;
  int64_t parent = -1, entered = 0, begin = 0, end = 0;
  bool failed = true;  // until results come or the stretch ends
  std::vector<ValueNote> arguments, results;
  std::string node;
  std::vector<SavedNote> saved;
  std::vector<event::Kernel> kernels;
  std::vector<Refusal> refusals;
  std::vector<Chunks> chunks;
  int64_t allocated = 0, freed = 0;
  std::shared_ptr<std::vector<Line>> lines;
};

struct MemoryNote {
  int64_t time;
  const void* block;
  int64_t bytes;
  int64_t record;
};

class SavedNotes final : public autograd::SavedReader {
 public:
  explicit SavedNotes(std::vector<SavedNote>& out) : out_(out) {}
  void tensor(const char* name, autograd::SavedTensor& t) override { add(name, t); }
  void tensors(const char* name, autograd::SavedTensorList& list) override {
    for (autograd::SavedTensor& t : list.items()) add(name, t);
  }
  void value(const char*, const Value&) override {}

 private:
  void add(const char* name, const autograd::SavedTensor& t) {
    if (t.kept().defined()) out_.push_back({name, TensorNote(t.kept())});
  }
  std::vector<SavedNote>& out_;
};

class Tracer final : public dispatch::Observer, public event::Listener {
 public:
  Tracer(bool values, bool whole_stack, bool memory, std::string own)
      : values_(values), whole_stack_(whole_stack), memory_(memory), own_(std::move(own)) {}

  // A thread may end while it is being listened to.
  ~Tracer() override {
    if (event::t_listener == this) stop();
  }
  void start() {
    observer_before_ = std::exchange(dispatch::t_local.observer, this);
    listener_before_ = std::exchange(event::t_listener, this);
    started = now();
  }
  void stop() {
    dispatch::t_local.observer = observer_before_;
    event::t_listener = listener_before_;
    stopped = now();
  }

  // --- the dispatcher
  void on_call(const Operator& op, KeySet keys, dispatch::RawKernel) override {
    Record r;
    r.op = &op;
    r.keys = keys;
    open(std::move(r));
  }
  void on_return(const Operator&) override { close(); }
  bool wants_values() const override { return values_; }
  void on_arguments(const Stack& stack) override { current().arguments = notes_of(stack); }
  void on_results(const Stack& stack) override {
    Record& r = current();
    r.failed = false;
    r.results = notes_of(stack);
    if ((r.keys & kAutogradKeys).empty()) return;
    for (const Value& v : stack) {
      const auto* t = std::get_if<Tensor>(&v);
      if (!t || !t->defined()) continue;
      const autograd::Meta* meta = autograd::meta(*t);
      if (const auto node = meta ? meta->grad_fn : nullptr) {
        r.node = node->name();
        SavedNotes reader(r.saved);
        node->read_saved(reader);
        return;
      }
    }
  }

  // --- everybody else
  void on_enter() override {
    if (inside_++ > 0) return;
    entered_ = now();
    // Lines are for those who read more than times.
    if (values_ || whole_stack_) lines_ = lines_now();
  }
  void on_leave() override {
    if (inside_ > 0) --inside_;
  }
  void on_kernel(const event::Kernel& k) override {
    if (!open_.empty()) current().kernels.push_back(k);
  }
  void on_refusal(const char* candidate, const char* reason) override {
    if (!open_.empty()) current().refusals.push_back({candidate, reason});
  }
  void on_chunks(int64_t chunks, int threads) override {
    if (!open_.empty()) current().chunks.push_back({chunks, threads});
  }
  void on_memory(const void* block, int64_t bytes) override {
    if (!open_.empty()) (bytes > 0 ? current().allocated : current().freed) += std::abs(bytes);
    if (memory_) memory.push_back({now(), block, bytes, open_.empty() ? -1 : open_.back()});
  }
  void on_begin(const char* kind, const char* name) override { begin_scope(kind, name); }
  void on_end() override { end_scope(); }

  void begin_scope(std::string kind, std::string name) {
    Record r;
    r.kind = std::move(kind);
    r.name = std::move(name);
    open(std::move(r));
  }
  void end_scope() {
    if (open_.empty()) return;
    current().failed = false;
    close();
  }

  std::deque<Record> records;  // grows without moving what is there
  std::vector<MemoryNote> memory;
  int64_t started = 0, stopped = 0;

 private:
  Record& current() { return records[static_cast<size_t>(open_.back())]; }
  void open(Record r) {
    r.parent = open_.empty() ? -1 : open_.back();
    if (inside_ > 0) {
      r.entered = entered_;
      r.lines = lines_;
    }
    open_.push_back(static_cast<int64_t>(records.size()));
    records.push_back(std::move(r));
    current().begin = now();
  }
  void close() {
    if (open_.empty()) return;
    current().end = now();
    if (!values_) current().failed = false;
    open_.pop_back();
  }
  // The innermost line outside of the package; all lines of it and around it where they are wanted.
  // Under the GIL.
  std::shared_ptr<std::vector<Line>> lines_now() const {
    auto lines = std::make_shared<std::vector<Line>>();
    PyFrameObject* frame = PyEval_GetFrame();
    Ref held = Ref::share(reinterpret_cast<PyObject*>(frame));
    while (held) {
      auto* f = reinterpret_cast<PyFrameObject*>(held.get());
      Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)));
      PyObject* file = reinterpret_cast<PyCodeObject*>(code.get())->co_filename;
      Py_ssize_t n = 0;
      const char* text = PyUnicode_AsUTF8AndSize(file, &n);
      if (!text) PyErr_Clear();
      const bool inside = text && std::string_view(text, static_cast<size_t>(n)).starts_with(own_);
      if (!inside || whole_stack_) lines->push_back({std::move(code), PyFrame_GetLineNumber(f)});
      if (!inside && !whole_stack_) break;
      held = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
    }
    return lines;
  }

  const bool values_, whole_stack_, memory_;
  const std::string own_;
  std::vector<int64_t> open_;
  int inside_ = 0;
  int64_t entered_ = 0;
  std::shared_ptr<std::vector<Line>> lines_;
  dispatch::Observer* observer_before_ = nullptr;
  event::Listener* listener_before_ = nullptr;
};

// --- to Python

Ref tuple_of(IntList v) {
  Ref out = owned(PyTuple_New(static_cast<Py_ssize_t>(v.size())));
  for (size_t i = 0; i < v.size(); ++i)
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(v[i])));
  return out;
}
template <class List, class F>
Ref list_of(const List& items, F&& each) {
  Ref out = owned(PyList_New(0));
  for (const auto& item : items) {
    Ref one = each(item);
    checked(PyList_Append(out.get(), one.get()));
  }
  return out;
}
Ref to_python(const TensorNote& t) {
  Ref dtype = owned(wrap(t.dtype));
  Ref sizes = tuple_of(t.sizes), strides = tuple_of(t.strides);
  return owned(Py_BuildValue(
      "(OOOLKLO)", dtype.get(), sizes.get(), strides.get(), static_cast<long long>(t.offset),
      static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(t.storage)),
      static_cast<long long>(t.storage_bytes), t.requires_grad ? Py_True : Py_False));
}
Ref to_python(const ValueNote& v) {
  Ref tensors = list_of(v.tensors, [](const TensorNote& t) { return to_python(t); });
  Ref other = owned(wrap_value(v.other));
  return owned(Py_BuildValue("(OOO)", tensors.get(), other.get(), v.list ? Py_True : Py_False));
}
Ref keys_to_python(KeySet keys) {
  Ref out = owned(PyList_New(0));
  for (int i = kNumDispatchKeys - 1; i > 0; --i) {
    const auto key = static_cast<DispatchKey>(i);
    if (!keys.has(key)) continue;
    Ref one = owned(wrap(std::string(name(key))));
    checked(PyList_Append(out.get(), one.get()));
  }
  return out;
}
void put(PyObject* dict, const char* key, Ref value) {
  checked(PyDict_SetItemString(dict, key, value.get()));
}

Ref to_python(const Record& r) {
  Ref d = owned(PyDict_New());
  if (r.op) {
    const auto resolution = r.op->resolution(r.keys.highest());
    put(d.get(), "kind", owned(wrap(std::string("call"))));
    put(d.get(), "name", owned(wrap(r.op->full_name())));
    put(d.get(), "schema", owned(wrap(std::string(r.op->info().schema))));
    put(d.get(), "keys", keys_to_python(r.keys));
    put(d.get(), "rule", owned(wrap(std::string(resolution.rule))));
    put(d.get(), "where", owned(wrap(std::string(resolution.kernel.where))));
  } else {
    put(d.get(), "kind", owned(wrap(r.kind)));
    put(d.get(), "name", owned(wrap(r.name)));
  }
  put(d.get(), "parent", owned(wrap(r.parent)));
  put(d.get(), "entered", owned(wrap(r.entered)));
  put(d.get(), "begin", owned(wrap(r.begin)));
  put(d.get(), "end", owned(wrap(r.end)));
  put(d.get(), "failed", owned(wrap(r.failed)));
  const auto note = [](const ValueNote& v) { return to_python(v); };
  put(d.get(), "arguments", list_of(r.arguments, note));
  put(d.get(), "results", list_of(r.results, note));
  put(d.get(), "node", owned(wrap(r.node)));
  put(d.get(), "saved", list_of(r.saved, [](const SavedNote& s) {
        Ref tensor = to_python(s.tensor);
        return owned(Py_BuildValue("(sO)", s.name.c_str(), tensor.get()));
      }));
  put(d.get(), "kernels", list_of(r.kernels, [](const event::Kernel& k) {
        return owned(
            Py_BuildValue("(sszL)", k.family, k.name, k.isa, static_cast<long long>(k.elements)));
      }));
  put(d.get(), "refusals", list_of(r.refusals, [](const Refusal& f) {
        return owned(Py_BuildValue("(ss)", f.candidate, f.reason));
      }));
  put(d.get(), "chunks", list_of(r.chunks, [](const Chunks& c) {
        return owned(Py_BuildValue("(Li)", static_cast<long long>(c.count), c.threads));
      }));
  put(d.get(), "allocated", owned(wrap(r.allocated)));
  put(d.get(), "freed", owned(wrap(r.freed)));
  static const std::vector<Line> none;
  put(d.get(), "lines", list_of(r.lines ? *r.lines : none, [](const Line& l) {
        auto* code = reinterpret_cast<PyCodeObject*>(l.code.get());
        return owned(Py_BuildValue("(OiO)", code->co_filename, l.number, code->co_name));
      }));
  return d;
}

thread_local std::unique_ptr<Tracer> t_tracer;

// _trace_start(values, whole_stack, memory, own_folder)
PyObject* trace_start(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  int values, whole_stack, memory;
  const char* own;
  if (!PyArg_ParseTuple(args, "ppps", &values, &whole_stack, &memory, &own)) return nullptr;
  if (t_tracer) raise_runtime("the events of this thread are being read already");
  t_tracer = std::make_unique<Tracer>(values != 0, whole_stack != 0, memory != 0, own);
  t_tracer->start();
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

// _trace_stop() -> {"records": [...], "memory": [...], "started": ns, "stopped": ns}
PyObject* trace_stop(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  if (!t_tracer) raise_runtime("the events of this thread are not being read");
  t_tracer->stop();
  const std::unique_ptr<Tracer> tracer = std::move(t_tracer);
  Ref out = owned(PyDict_New());
  put(out.get(), "records", list_of(tracer->records, [](const Record& r) { return to_python(r); }));
  put(out.get(), "memory", list_of(tracer->memory, [](const MemoryNote& m) {
        return owned(
            Py_BuildValue("(LKLL)", static_cast<long long>(m.time),
                          static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(m.block)),
                          static_cast<long long>(m.bytes), static_cast<long long>(m.record)));
      }));
  put(out.get(), "started", owned(wrap(tracer->started)));
  put(out.get(), "stopped", owned(wrap(tracer->stopped)));
  return out.leak();
  LAMINA_BORDER_END
}

PyObject* trace_begin(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  const char *kind, *name;
  if (!PyArg_ParseTuple(args, "ss", &kind, &name)) return nullptr;
  if (t_tracer) t_tracer->begin_scope(kind, name);
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* trace_end(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  if (t_tracer) t_tracer->end_scope();
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* trace_running(PyObject*, PyObject*) { return PyBool_FromLong(t_tracer != nullptr); }

}  // namespace

PyMethodDef trace_functions[] = {
    {"_trace_start", trace_start, METH_VARARGS, nullptr},
    {"_trace_stop", trace_stop, METH_NOARGS, nullptr},
    {"_trace_begin", trace_begin, METH_VARARGS, "A stretch of work with a kind and a name."},
    {"_trace_end", trace_end, METH_NOARGS, nullptr},
    {"_trace_running", trace_running, METH_NOARGS, nullptr},
    {}};

}  // namespace lamina::border

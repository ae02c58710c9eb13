// Hears the events of one thread for explain and the profiler: calls of operators with what they
// were given and gave, and what border, kernels, allocator and engine said meanwhile. While it
// listens it writes plain records; trace_read.cpp makes sense of them afterwards.
#include "lamina/border/trace.h"

#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "lamina/autograd/node.h"
#include "lamina/autograd/saved_tensor.h"
#include "lamina/autograd/variable.h"
#include "lamina/border/operators.h"
#include "lamina/border/override.h"
#include "lamina/border/trace_read.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

namespace {

using namespace trace;
using dispatch::Operator;

class SavedWriter final : public autograd::SavedReader {
 public:
  explicit SavedWriter(Stream& stream) : stream_(stream) {}
  void tensor(const char* name, autograd::SavedTensor& t) override { add(name, t); }
  void tensors(const char* name, autograd::SavedTensorList& list) override {
    for (autograd::SavedTensor& t : list.items()) add(name, t);
  }
  void value(const char*, const dispatch::Value&) override {}

 private:
  void add(const char* name, const autograd::SavedTensor& t) {
    if (t.kept().defined()) put_tensor(stream_, Tag::Saved, t.kept(), name);
  }
  Stream& stream_;
};

// Frames of the package itself, told apart by the file of their code; remembered by code.
class OwnCode {
 public:
  explicit OwnCode(std::string folder) : folder_(std::move(folder)) {}
  bool nowhere() const { return folder_.empty(); }
  // `code` stays alive in `stream` from now on.
  bool contains(PyObject* code, Stream& stream) {
    Entry& e = recent_[reinterpret_cast<uintptr_t>(code) / 64 % kRecent];
    if (e.code != code) [[unlikely]] {
      stream.keep(code);
      e = {code, look(code)};
    }
    return e.own;
  }

 private:
  bool look(PyObject* code) const {
    Py_ssize_t n = 0;
    const char* text =
        PyUnicode_AsUTF8AndSize(reinterpret_cast<PyCodeObject*>(code)->co_filename, &n);
    if (!text) PyErr_Clear();
    return text && std::string_view(text, static_cast<size_t>(n)).starts_with(folder_);
  }
  static constexpr size_t kRecent = 64;
  struct Entry {
    PyObject* code = nullptr;
    bool own = false;
  };
  const std::string folder_;
  Entry recent_[kRecent];
};

int64_t instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti * static_cast<int64_t>(sizeof(_Py_CODEUNIT));
#endif
}

class Tracer final : public dispatch::Observer,
                     public dispatch::ValueReader,
                     public event::Listener {
 public:
  Tracer(bool values, bool whole_stack, bool memory, std::string own)
      : trace_(std::make_unique<Trace>()),
        stream_(trace_->stream),
        values_(values),
        whole_stack_(whole_stack),
        memory_(memory),
        own_(std::move(own)) {
    trace_->values = values;
  }

  // A thread may end while it is being listened to.
  ~Tracer() override {
    if (event::t_listener == this) stop();
  }
  void start() {
    observer_before_ = std::exchange(dispatch::t_local.observer, this);
    listener_before_ = std::exchange(event::t_listener, this);
    if (values_) ++entered_function_modes;  // the border shows how it matches arguments
    trace_->started_ns = nanoseconds();
    trace_->started = ticks();
  }
  void stop() {
    trace_->stopped = ticks();
    trace_->stopped_ns = nanoseconds();
    if (values_) --entered_function_modes;
    dispatch::t_local.observer = observer_before_;
    event::t_listener = listener_before_;
  }
  std::unique_ptr<Trace> take() { return std::move(trace_); }
  bool values_wanted() const { return values_; }

  // --- the border
  void on_enter() override {
    if (!values_ && !whole_stack_) return;
    char* const before = stream_.place();
    put_event(Tag::Enter);
    put_frames();
    if (depth_ < kDepth) scopes_[depth_] = {before, stream_.place()};
    ++depth_;
  }
  void on_leave() override {
    if ((!values_ && !whole_stack_) || depth_ == 0) return;
    --depth_;
    // Nothing happened inside: the call was none of an operator.
    if (depth_ < kDepth && scopes_[depth_].after == stream_.place())
      stream_.rewind(scopes_[depth_].before);
    else
      put_event(Tag::Leave);
  }
  void match(const Parser& parser, int chosen, const Mismatch* others, int count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(Mismatch);
    auto* m = stream_.put<MatchEvent>(Tag::Match, 0, bytes);
    m->parser = &parser;
    m->chosen = chosen;
    m->count = count;
    std::copy_n(others, count, reinterpret_cast<Mismatch*>(m + 1));
    for (int i = 0; i < count; ++i)
      if (others[i].what) stream_.keep(others[i].what);
  }

  // --- the dispatcher
  void on_call(const Operator& op, KeySet keys, dispatch::RawKernel) override {
    auto* e = stream_.put<CallEvent>(Tag::Call);
    e->op = &op;
    e->keys = keys;
    keys_ = keys;
    e->time = ticks();
  }
  void on_return(const Operator&) override {
    put_event(Tag::Return, std::uncaught_exceptions() > 0);
  }
  ValueReader* values() override { return values_ ? this : nullptr; }
  void begin(bool results) override {
    stream_.put<Record>(results ? Tag::Results : Tag::Arguments);
    recorded_ = !results;
  }
  void none() override { stream_.put<Record>(Tag::None); }
  void tensor(const Tensor& t) override {
    put_tensor(stream_, Tag::Tensor, t);
    if (recorded_ || !t.impl()->autograd()) return;
    // The results of a call that was recorded lead to its node.
    const autograd::Meta* meta = autograd::meta(t);
    if (const auto node = meta ? meta->grad_fn : nullptr) {
      recorded_ = true;
      put_text(Tag::Node, node->name());
      SavedWriter writer(stream_);
      node->read_saved(writer);
    }
  }
  void tensors(TensorList list) override {
    size_t defined = 0;
    for (const Tensor& t : list) defined += t.defined();
    stream_.put<Record>(Tag::Tensors, static_cast<uint16_t>(std::min<size_t>(defined, 0xffff)));
    for (const Tensor& t : list)
      if (t.defined() && defined-- > 0) put_tensor(stream_, Tag::Tensor, t);
  }
  void scalar(const Scalar& number) override {
    stream_.put<ScalarValue>(Tag::Scalar)->number = number;
  }
  void text(std::string_view s) override { put_text(Tag::Text, s); }
  void integers(IntList list) override { put_numbers(Tag::Integers, list); }
  void reals(ListView<double> list) override { put_numbers(Tag::Reals, list); }
  void other(const dispatch::Value& v) override {
    trace_->others.push_back(std::make_unique<dispatch::Value>(v));
    stream_.put<OtherValue>(Tag::Other)->value = trace_->others.back().get();
  }
  void end() override {}

  // --- everybody else
  void on_kernel(const event::Kernel& k) override {
    if (!values_) return;
    auto* e = stream_.put<KernelEvent>(Tag::Kernel);
    e->family = k.family;
    e->name = k.name;
    e->isa = k.isa;
    e->elements = k.elements;
  }
  void on_refusal(const char* candidate, const char* reason) override {
    if (!values_) return;
    auto* e = stream_.put<RefusalEvent>(Tag::Refusal);
    e->candidate = candidate;
    e->reason = reason;
  }
  void on_chunks(int64_t chunks, int threads) override {
    if (!values_) return;
    auto* e = stream_.put<LoopEvent>(Tag::Loop);
    e->chunks = chunks;
    e->threads = threads;
    e->time = ticks();
  }
  void on_chunks_done() override {
    if (values_) put_event(Tag::LoopDone);
  }
  void on_allocator() override {
    if (values_ || memory_) asked_ = ticks();
  }
  void on_memory(const void* block, int64_t bytes, bool reused) override {
    if (!values_ && !memory_) return;
    auto* e = stream_.put<MemoryEvent>(Tag::Memory, reused);
    e->block = block;
    e->count = bytes;
    e->asked = asked_;
    e->time = ticks();
  }
  void on_begin(const char* kind, const char* name) override {
    const std::string_view k(kind), n(name);
    auto* e = stream_.put<Event>(Tag::Begin, 0, k.size() + n.size() + 2);
    char* text = reinterpret_cast<char*>(e + 1);
    std::memcpy(text, k.data(), k.size() + 1);
    std::memcpy(text + k.size() + 1, n.data(), n.size() + 1);
    e->time = ticks();
  }
  void on_end() override { put_event(Tag::End); }

 private:
  void put_event(Tag tag, bool note = false) {
    auto* e = stream_.put<Event>(tag, note);
    e->time = ticks();
  }
  void put_text(Tag tag, std::string_view text) {
    auto* r = stream_.put<Record>(tag, 0, text.size() + 1);
    char* to = reinterpret_cast<char*>(r + 1);
    std::memcpy(to, text.data(), text.size());
    to[text.size()] = 0;
  }
  template <class T>
  void put_numbers(Tag tag, ListView<T> list) {
    const size_t bytes = list.size() * sizeof(T);
    auto* r = stream_.put<Record>(tag, 0, bytes);
    if (bytes) std::memcpy(static_cast<void*>(r + 1), list.data(), bytes);
  }
  // The innermost line outside of the package; all lines where they are wanted. Under the GIL.
  void put_frames() {
    if (!whole_stack_ && own_.nowhere()) return;
    Ref held;
    for (PyFrameObject* frame = PyEval_GetFrame(); frame;) {
      PyObject* code = reinterpret_cast<PyObject*>(PyFrame_GetCode(frame));
      const bool inside = own_.contains(code, stream_);
      if (!inside || whole_stack_) {
        auto* f = stream_.put<Frame>(Tag::Frame);
        f->code = code;
        f->instruction = instruction_of(frame);
      }
      Py_DECREF(code);  // the stream holds it
      if (!inside && !whole_stack_) break;
      frame = PyFrame_GetBack(frame);
      held = Ref::steal(reinterpret_cast<PyObject*>(frame));
    }
  }

  std::unique_ptr<Trace> trace_;
  Stream& stream_;
  const bool values_, whole_stack_, memory_;
  OwnCode own_;
  KeySet keys_;
  bool recorded_ = false;  // no node is looked for
  int64_t asked_ = 0;
  static constexpr int kDepth = 32;
  struct Scope {
    char* before;
    char* after;
  };
  Scope scopes_[kDepth];
  int depth_ = 0;
  dispatch::Observer* observer_before_ = nullptr;
  event::Listener* listener_before_ = nullptr;
};

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

// _trace_stop() -> what _trace_read reads
PyObject* trace_stop(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  if (!t_tracer) raise_runtime("the events of this thread are not being read");
  t_tracer->stop();
  const std::unique_ptr<Tracer> tracer = std::move(t_tracer);
  return wrap_trace(tracer->take());
  LAMINA_BORDER_END
}

PyObject* trace_begin(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  const char *kind, *name;
  if (!PyArg_ParseTuple(args, "ss", &kind, &name)) return nullptr;
  if (t_tracer) t_tracer->on_begin(kind, name);
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* trace_end(PyObject*, PyObject*) {
  LAMINA_BORDER_BEGIN
  if (t_tracer) t_tracer->on_end();
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}
PyObject* trace_running(PyObject*, PyObject*) { return PyBool_FromLong(t_tracer != nullptr); }

}  // namespace

bool wants_matching() { return t_tracer && t_tracer->values_wanted(); }
void note_matching(const Parser& parser, int chosen, const Mismatch* others, int count) {
  t_tracer->match(parser, chosen, others, count);
}

PyMethodDef trace_functions[] = {
    {"_trace_start", trace_start, METH_VARARGS, nullptr},
    {"_trace_stop", trace_stop, METH_NOARGS, nullptr},
    {"_trace_read", trace_read, METH_O, "The records of what `_trace_stop` gave, as a dict."},
    {"_trace_begin", trace_begin, METH_VARARGS, "A stretch of work with a kind and a name."},
    {"_trace_end", trace_end, METH_NOARGS, nullptr},
    {"_trace_running", trace_running, METH_NOARGS, nullptr},
    {}};

}  // namespace lamina::border

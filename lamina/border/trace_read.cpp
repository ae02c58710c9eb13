// From the records of a trace to Python: calls nested as they ran, with all that was said of them.
#include "lamina/border/trace_read.h"

#include <algorithm>
#include <span>
#include <string>

#include "lamina/border/operators.h"
#include "lamina/border/trace.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

namespace {

using namespace trace;
using dispatch::Value;

struct Call {
  const CallEvent* call = nullptr;  // null for a stretch of work with a name
  const char *kind = "", *name = "";
  int64_t parent = -1, scope = -1, begin = 0, end = 0;
  bool failed = true;  // until it returns
  bool outer = false;  // came from Python itself, not from a call that came in with it
  std::vector<const Record*> arguments, results;
  bool returning = false;  // values that come now are results
  const char* node = "";
  std::vector<const TensorValue*> saved;
  std::vector<const KernelEvent*> kernels;
  std::vector<const RefusalEvent*> refusals;
  struct Ran {
    const LoopEvent* loop;
    int64_t time;
  };
  std::vector<Ran> loops;
  int64_t allocated = 0, reused = 0, freed = 0, allocator = 0;
};

// A call from Python between its entrance and its way back.
struct Scope {
  int64_t entered = 0, left = 0, parent = -1;
  std::vector<const Frame*> frames;
  const MatchEvent* match = nullptr;
};

struct Memory {
  const MemoryEvent* event;
  int64_t call;
};

// Puts every record where it belongs.
class Reader {
 public:
  explicit Reader(const Trace& trace) : trace_(trace) {
    trace.stream.each([&](const Record& r) { read(r); });
    for (const int64_t i : open_) calls[static_cast<size_t>(i)].end = trace.stopped;
    for (const int64_t i : open_scopes_) scopes[static_cast<size_t>(i)].left = trace.stopped;
  }
  std::vector<Call> calls;
  std::vector<Scope> scopes;
  std::vector<Memory> memory;

 private:
  static int64_t time(const Record& r) { return static_cast<const Event&>(r).time; }
  Call* now() { return open_.empty() ? nullptr : &calls[static_cast<size_t>(open_.back())]; }
  Call& open(int64_t begin) {
    Call c;
    c.parent = open_.empty() ? -1 : open_.back();
    c.scope = open_scopes_.empty() ? -1 : open_scopes_.back();
    c.outer = !now() || now()->scope != c.scope;
    c.begin = begin;
    open_.push_back(static_cast<int64_t>(calls.size()));
    return calls.emplace_back(std::move(c));
  }
  void close(const Record& r) {
    if (open_.empty()) return;
    now()->end = time(r);
    now()->failed = r.note != 0;
    open_.pop_back();
  }
  void read(const Record& r) {
    switch (r.tag) {
      case Tag::Enter:
        open_scopes_.push_back(static_cast<int64_t>(scopes.size()));
        scopes.emplace_back().entered = time(r);
        break;
      case Tag::Frame:
        scopes.back().frames.push_back(static_cast<const Frame*>(&r));
        break;
      case Tag::Leave:
        if (open_scopes_.empty()) break;
        scopes[static_cast<size_t>(open_scopes_.back())].left = time(r);
        open_scopes_.pop_back();
        break;
      case Tag::Match:
        if (!open_scopes_.empty())
          scopes[static_cast<size_t>(open_scopes_.back())].match =
              static_cast<const MatchEvent*>(&r);
        break;
      case Tag::Call:
        open(time(r)).call = static_cast<const CallEvent*>(&r);
        break;
      case Tag::Begin: {
        Call& c = open(time(r));
        c.kind = behind<char>(static_cast<const Event&>(r));
        c.name = c.kind + std::strlen(c.kind) + 1;
        break;
      }
      case Tag::Return:
      case Tag::End:
        close(r);
        break;
      default:
        if (Call* c = now()) add(*c, r);
        if (r.tag == Tag::Memory)
          memory.push_back(
              {static_cast<const MemoryEvent*>(&r), open_.empty() ? -1 : open_.back()});
    }
  }
  void add(Call& c, const Record& r) {
    switch (r.tag) {
      case Tag::Arguments:
      case Tag::Results:
        c.returning = r.tag == Tag::Results;
        break;
      case Tag::None:
      case Tag::Tensor:
      case Tag::Tensors:
      case Tag::Scalar:
      case Tag::Text:
      case Tag::Integers:
      case Tag::Reals:
      case Tag::Other:
        (c.returning ? c.results : c.arguments).push_back(&r);
        break;
      case Tag::Node:
        c.node = behind<char>(r);
        break;
      case Tag::Saved:
        c.saved.push_back(static_cast<const TensorValue*>(&r));
        break;
      case Tag::Kernel:
        c.kernels.push_back(static_cast<const KernelEvent*>(&r));
        break;
      case Tag::Refusal:
        c.refusals.push_back(static_cast<const RefusalEvent*>(&r));
        break;
      case Tag::Loop:
        c.loops.push_back({static_cast<const LoopEvent*>(&r), 0});
        break;
      case Tag::LoopDone:
        // Loops inside a loop end first.
        for (size_t i = c.loops.size(); i-- > 0;)
          if (c.loops[i].time == 0) {
            c.loops[i].time = std::max<int64_t>(time(r) - c.loops[i].loop->time, 1);
            break;
          }
        break;
      case Tag::Memory: {
        const auto& m = static_cast<const MemoryEvent&>(r);
        c.allocator += m.time - m.asked;
        if (m.count <= 0)
          c.freed -= m.count;
        else if (c.allocated += m.count; m.note)
          c.reused += m.count;
        break;
      }
      default:
        break;
    }
  }

  const Trace& trace_;
  std::vector<int64_t> open_, open_scopes_;
};

// --- to Python

template <class List, class F>
Ref list_of(const List& items, F&& each) {
  Ref out = owned(PyList_New(0));
  for (const auto& item : items) {
    Ref one = each(item);
    checked(PyList_Append(out.get(), one.get()));
  }
  return out;
}
Ref text(std::string_view s) {
  return owned(PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace"));
}
void put(const Ref& dict, const char* key, Ref value) {
  checked(PyDict_SetItemString(dict.get(), key, value.get()));
}
void put(const Ref& dict, const char* key, int64_t n) { put(dict, key, owned(wrap(n))); }

class Writer {
 public:
  explicit Writer(const Trace& t) : trace_(t) {
    const auto ticks = static_cast<double>(t.stopped - t.started);
    scale_ = ticks > 0 ? static_cast<double>(t.stopped_ns - t.started_ns) / ticks : 1.0;
  }
  int64_t time(int64_t tick) const {
    return tick ? trace_.started_ns + length(tick - trace_.started) : 0;
  }
  int64_t length(int64_t ticks) const {
    return static_cast<int64_t>(static_cast<double>(ticks) * scale_);
  }

  static Ref tensor(const TensorValue& t) {
    const auto n = static_cast<size_t>(t.ndim);
    const IntList sizes(behind<int64_t>(t), n), strides(sizes.data() + n, n);
    const auto item = static_cast<int64_t>(item_size(static_cast<ScalarType>(t.dtype)));
    int64_t bytes = item;
    for (const int64_t s : sizes) bytes *= s;
    Ref dtype = owned(wrap(static_cast<ScalarType>(t.dtype)));
    Ref shape = owned(wrap_ints(sizes)), steps = owned(wrap_ints(strides));
    // Where the storage's bytes begin, and how many belong to the window.
    const auto data = reinterpret_cast<uintptr_t>(t.data);
    const uintptr_t first = data ? data - static_cast<uintptr_t>(t.offset * item) : 0;
    return owned(Py_BuildValue(
        "(OOOLKLO)", dtype.get(), shape.get(), steps.get(), static_cast<long long>(t.offset),
        static_cast<unsigned long long>(first), t.has_bytes ? static_cast<long long>(bytes) : 0LL,
        t.requires_grad ? Py_True : Py_False));
  }

  // (tensors, other, is a list) for each value.
  static Ref values(const std::vector<const Record*>& records) {
    Ref out = owned(PyList_New(0));
    for (auto r = records.begin(); r != records.end(); ++r) {
      Ref tensors = owned(PyList_New(0));
      Ref other = Ref::share(Py_None);
      const auto add = [&](const Record* t) {
        Ref one = tensor(static_cast<const TensorValue&>(*t));
        checked(PyList_Append(tensors.get(), one.get()));
      };
      const bool list = (*r)->tag == Tag::Tensors;
      if (list)
        for (int k = (*r)->note; k > 0; --k) add(*++r);
      else if ((*r)->tag == Tag::Tensor)
        add(*r);
      else if ((*r)->tag != Tag::None)
        other = owned(plain(**r));
      Ref one =
          owned(Py_BuildValue("(OOO)", tensors.get(), other.get(), list ? Py_True : Py_False));
      checked(PyList_Append(out.get(), one.get()));
    }
    return out;
  }

  Ref call(const Call& c) const {
    Ref d = owned(PyDict_New());
    if (c.call) {
      const dispatch::Operator& op = *c.call->op;
      const auto resolution = op.resolution(c.call->keys.highest());
      put(d, "kind", text("call"));
      put(d, "name", text(op.full_name()));
      put(d, "schema", text(op.info().schema));
      put(d, "keys", keys(c.call->keys));
      put(d, "rule", text(resolution.rule));
      put(d, "where", text(resolution.kernel.where));
    } else {
      put(d, "kind", text(c.kind));
      put(d, "name", text(c.name));
    }
    put(d, "parent", c.parent);
    put(d, "scope", c.scope);
    put(d, "outer", owned(wrap(c.outer)));
    put(d, "begin", time(c.begin));
    put(d, "end", time(c.end));
    put(d, "failed", owned(wrap(c.failed)));
    put(d, "arguments", values(c.arguments));
    put(d, "results", values(c.results));
    put(d, "node", text(c.node));
    put(d, "saved", list_of(c.saved, [](const TensorValue* t) {
          Ref one = tensor(*t);
          const auto skip = 2 * size_t{t->ndim} * sizeof(int64_t);
          return owned(Py_BuildValue("(sO)", behind<char>(*t, skip), one.get()));
        }));
    put(d, "kernels", list_of(c.kernels, [](const KernelEvent* k) {
          return owned(Py_BuildValue("(sszL)", k->family, k->name, k->isa,
                                     static_cast<long long>(k->elements)));
        }));
    put(d, "refusals", list_of(c.refusals, [](const RefusalEvent* f) {
          return owned(Py_BuildValue("(ss)", f->candidate, f->reason));
        }));
    put(d, "loops", list_of(c.loops, [&](const Call::Ran& l) {
          return owned(Py_BuildValue("(LLL)", static_cast<long long>(l.loop->chunks),
                                     static_cast<long long>(l.loop->threads),
                                     static_cast<long long>(length(l.time))));
        }));
    put(d, "allocated", c.allocated);
    put(d, "reused", c.reused);
    put(d, "freed", c.freed);
    put(d, "allocator", length(c.allocator));
    return d;
  }

  // (entered, left, lines, function, number of the chosen signature, [(signature, why not)])
  Ref scope(const Scope& s) const {
    Ref lines = list_of(s.frames, [](const Frame* f) {
      auto* code = reinterpret_cast<PyCodeObject*>(f->code);
      const int line = PyCode_Addr2Line(code, static_cast<int>(f->instruction));
      return owned(Py_BuildValue("(OiO)", code->co_filename, line, code->co_name));
    });
    Ref signatures = owned(PyList_New(0));
    Ref name = text("");
    int64_t chosen = -1;
    if (s.match) {
      const Parser& parser = *s.match->parser;
      name = text(*parser.place() ? std::string(parser.place()) + "." + parser.name()
                                  : std::string(parser.name()));
      chosen = s.match->chosen;
      const std::span others(behind<Mismatch>(*s.match), static_cast<size_t>(s.match->count));
      for (int i = 0; i < parser.count(); ++i) {
        std::string why;
        for (const Mismatch& m : others)
          if (m.signature == i) why = text_of(m, parser.signatures()[i]);
        Ref reason = text(why);
        Ref one = owned(Py_BuildValue("(sO)", parser.signatures()[i].text, reason.get()));
        checked(PyList_Append(signatures.get(), one.get()));
      }
    }
    return owned(Py_BuildValue("(LLOOLO)", static_cast<long long>(time(s.entered)),
                               static_cast<long long>(time(s.left)), lines.get(), name.get(),
                               static_cast<long long>(chosen), signatures.get()));
  }

 private:
  // Numbers of eight bytes in a list.
  static size_t count(const Record& r) { return (r.bytes - sizeof(Record)) / 8; }
  static PyObject* plain(const Record& r) {
    switch (r.tag) {
      case Tag::Scalar:
        return wrap(static_cast<const ScalarValue&>(r).number);
      case Tag::Text:
        return text(behind<char>(r)).leak();
      case Tag::Integers:
        return wrap_ints(IntList(behind<int64_t>(r), count(r)));
      case Tag::Reals: {
        const double* numbers = behind<double>(r);
        return wrap_value(std::vector<double>(numbers, numbers + count(r)));
      }
      default:
        return wrap_value(*static_cast<const OtherValue&>(r).value);
    }
  }
  static Ref keys(KeySet keys) {
    Ref out = owned(PyList_New(0));
    for (int i = kNumDispatchKeys - 1; i > 0; --i) {
      const auto key = static_cast<DispatchKey>(i);
      if (!keys.has(key)) continue;
      Ref one = text(name(key));
      checked(PyList_Append(out.get(), one.get()));
    }
    return out;
  }

  const Trace& trace_;
  double scale_ = 1;
};

constexpr const char* kCapsule = "lamina.trace";

}  // namespace

PyObject* wrap_trace(std::unique_ptr<Trace> trace) {
  PyObject* capsule = checked(PyCapsule_New(trace.get(), kCapsule, [](PyObject* c) {
    delete static_cast<Trace*>(PyCapsule_GetPointer(c, kCapsule));
  }));
  trace.release();
  return capsule;
}

PyObject* trace_read(PyObject*, PyObject* capsule) {
  LAMINA_BORDER_BEGIN
  const auto* trace = static_cast<const Trace*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (!trace) return nullptr;
  const Reader reader(*trace);
  const Writer writer(*trace);
  Ref out = owned(PyDict_New());
  put(out, "records", list_of(reader.calls, [&](const Call& c) { return writer.call(c); }));
  put(out, "scopes", list_of(reader.scopes, [&](const Scope& s) { return writer.scope(s); }));
  put(out, "memory", list_of(reader.memory, [&](const Memory& m) {
        return owned(Py_BuildValue(
            "(LKLL)", static_cast<long long>(writer.time(m.event->time)),
            static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(m.event->block)),
            static_cast<long long>(m.event->count), static_cast<long long>(m.call)));
      }));
  put(out, "started", trace->started_ns);
  put(out, "stopped", trace->stopped_ns);
  return out.leak();
  LAMINA_BORDER_END
}

}  // namespace lamina::border

// What a reader of the event stream is told, as it is told: plain records one after the other in
// large chunks of memory. Nothing is made of them before somebody asks (trace_read.cpp).
#pragma once

#include <cstring>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lamina/border/python.h"
#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"
#include "lamina/dispatch/operator.h"

namespace lamina::border {

class Parser;
struct Mismatch;

namespace trace {

// The cheapest steady clock, in ticks of its own; and the system's.
int64_t ticks();
int64_t nanoseconds();

enum class Tag : uint16_t {
  Enter,      // a call from Python comes in: Event, then its frames
  Frame,      // one frame of it, the innermost first
  Leave,      // Event
  Match,      // the border has chosen a signature: MatchEvent
  Call,       // CallEvent
  Return,     // Event; `note` is 1 where the call raised
  Arguments,  // of the call that began last: Record, then values
  Results,
  None,  // values
  Tensor,
  Tensors,  // `note` tensors follow
  Scalar,
  Text,
  Integers,
  Reals,
  Other,
  Node,   // the node that was recorded: a name
  Saved,  // what it keeps: TensorValue, then a name
  Kernel,
  Refusal,
  Loop,      // LoopEvent
  LoopDone,  // Event
  Memory,
  Begin,  // a stretch of work with a name: Event, then kind and name, each closed by a zero
  End,    // Event
};

struct Record {
  Tag tag;
  uint16_t note;
  uint32_t bytes;  // of the whole record, a multiple of eight
};
struct Event : Record {
  int64_t time;
};
struct Frame : Record {
  PyObject* code;
  int64_t instruction;
};
struct MatchEvent : Record {  // then the mismatches of all signatures but the chosen one
  const Parser* parser;
  int32_t chosen;
  int32_t count;
};
struct CallEvent : Event {
  const dispatch::Operator* op;
  KeySet keys;
};
struct TensorValue : Record {  // then sizes and strides
  uint8_t dtype, ndim;
  bool requires_grad, has_bytes;
  int64_t offset;
  const void* data;  // of the element at index 0...
};
struct ScalarValue : Record {
  lamina::Scalar number;
};
struct OtherValue : Record {
  dispatch::Value* value;  // owned by the stream
};
struct KernelEvent : Record {
  const char *family, *name, *isa;
  int64_t elements;
};
struct RefusalEvent : Record {
  const char *candidate, *reason;
};
struct LoopEvent : Event {
  int64_t chunks;
  int64_t threads;
};
struct MemoryEvent : Event {  // `note` is 1 where no new memory was needed
  int64_t asked;              // the time at which the allocator was asked
  const void* block;
  int64_t count;
};

class Stream {
 public:
  Stream() { grow(0); }
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // A record with room for `more` bytes behind it.
  template <class T>
  T* put(Tag tag, uint16_t note = 0, size_t more = 0) {
    const size_t bytes = (sizeof(T) + more + 7) & ~size_t{7};
    if (static_cast<size_t>(end_ - at_) < bytes) [[unlikely]]
      grow(bytes);
    T* record = reinterpret_cast<T*>(at_);
    at_ += bytes;
    record->tag = tag;
    record->note = note;
    record->bytes = static_cast<uint32_t>(bytes);
    return record;
  }
  // Takes back everything since `place`, which lies in the present chunk.
  char* place() const { return at_; }
  void rewind(char* place) { at_ = place; }

  // Keeps an object alive as long as the stream; under the GIL.
  void keep(PyObject* object) {
    if (kept_.insert(object).second) Py_INCREF(object);
  }

  template <class F>
  void each(F&& f) const {
    for (size_t i = 0; i < chunks_.size(); ++i) {
      const char* end = i + 1 == chunks_.size() ? at_ : chunks_[i].used;
      for (const char* p = chunks_[i].begin; p != end;) {
        const auto* record = reinterpret_cast<const Record*>(p);
        f(*record);
        p += record->bytes;
      }
    }
  }

 private:
  struct Chunk {
    char* begin;
    char* used;
    size_t size;
  };
  void grow(size_t at_least);
  char* at_ = nullptr;
  char* end_ = nullptr;
  std::vector<Chunk> chunks_;
  std::unordered_set<PyObject*> kept_;
};

// What lies behind a record.
template <class Item, class T>
const Item* behind(const T& record, size_t skip = 0) {
  return reinterpret_cast<const Item*>(reinterpret_cast<const char*>(&record + 1) + skip);
}

}  // namespace trace
}  // namespace lamina::border

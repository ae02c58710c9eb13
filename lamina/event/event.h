// The one event stream. Every floor writes what it does to the listener of its thread; explain, the
// profiler and the memory timeline read it. While nobody listens, an event costs one predictable
// branch.
#pragma once

#include <cstdint>

namespace lamina::event {

// A kernel that ran, or was passed over.
struct Kernel {
  const char* family;  // "tile program", "gemm", ...
  const char* name;    // which one of the family
  const char* isa;  // instruction set, or the library that chose one; null where it does not matter
  int64_t elements = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // A call from Python enters and leaves the border.
  virtual void on_enter() {}
  virtual void on_leave() {}
  virtual void on_kernel(const Kernel&) {}
  // A candidate that was asked before the kernel that runs, and why it would not.
  virtual void on_refusal(const char* /*candidate*/, const char* /*reason*/) {}
  // A parallel loop begins, and is done.
  virtual void on_chunks(int64_t /*chunks*/, int /*threads*/) {}
  virtual void on_chunks_done() {}
  // The CPU allocator is asked, and has answered: bytes were taken from it (positive) or given back
  // (negative). `reused`: the system was not asked for them.
  virtual void on_allocator() {}
  virtual void on_memory(const void* /*block*/, int64_t /*bytes*/, bool /*reused*/) {}
  // A named stretch of work: a node of a backward pass.
  virtual void on_begin(const char* /*kind*/, const char* /*name*/) {}
  virtual void on_end() {}
};

extern __attribute__((tls_model("initial-exec"))) constinit thread_local Listener* t_listener;

inline bool listening() { return t_listener != nullptr; }

[[gnu::cold, gnu::noinline]] void report(const Kernel& kernel);

// Around a call from Python.
class BorderCall {
 public:
  BorderCall() : listener_(t_listener) {
    if (listener_) [[unlikely]]
      listener_->on_enter();
  }
  ~BorderCall() {
    if (listener_) [[unlikely]]
      leave();
  }
  BorderCall(const BorderCall&) = delete;
  BorderCall& operator=(const BorderCall&) = delete;

 private:
  // The call may have ended the listening.
  [[gnu::cold, gnu::noinline]] void leave() const {
    if (t_listener == listener_) listener_->on_leave();
  }
  Listener* listener_;
};

// Around a parallel loop.
class Loop {
 public:
  Loop(int64_t chunks, int threads) : listener_(t_listener) {
    if (listener_) [[unlikely]]
      listener_->on_chunks(chunks, threads);
  }
  ~Loop() {
    if (listener_) [[unlikely]]
      listener_->on_chunks_done();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

 private:
  Listener* listener_;
};

// Around a stretch of work with a name that outlives it.
class Scope {
 public:
  Scope(const char* kind, const char* name) : listener_(t_listener) {
    if (listener_) [[unlikely]]
      listener_->on_begin(kind, name);
  }
  ~Scope() {
    if (listener_ && t_listener == listener_) [[unlikely]]
      listener_->on_end();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Listener* listener_;
};

}  // namespace lamina::event

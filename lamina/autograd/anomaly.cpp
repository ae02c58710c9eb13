#include "lamina/autograd/anomaly.h"

#include <deque>
#include <mutex>

#include "lamina/autograd/engine.h"
#include "lamina/autograd/node.h"

namespace lamina::autograd {

std::atomic<bool> g_anomaly{false};

namespace {

std::atomic<bool> check_nan{true};
AnomalySource source;

struct Write {
  IntrusivePtr<Storage> storage;
  uint32_t version = 0;  // after the write
  std::shared_ptr<Attachment> line;
};
// Noted writes keep their storages alive, so only the last ones are remembered.
constexpr size_t kWritesNoted = 1000;
std::mutex writes_mutex;
std::deque<Write>& writes() {
  static std::deque<Write> list;
  return list;
}

}  // namespace

bool anomaly_checks_nan() { return check_nan.load(std::memory_order_relaxed); }

void set_anomaly(bool enabled, bool nan) {
  g_anomaly.store(enabled, std::memory_order_relaxed);
  check_nan.store(nan, std::memory_order_relaxed);
  if (enabled) return;
  std::deque<Write> old;
  const std::lock_guard lock(writes_mutex);
  old.swap(writes());
}

void set_anomaly_source(AnomalySource s) { source = s; }

void note_forward_call(Node& node) {
  if (source.note) node.hooks().metadata = source.note(running_node());
}

void warn_of_failure(const Node& node) {
  if (source.warn) source.warn(node);
}

void note_write(const Tensor& t) {
  if (!source.note || !t.storage()) return;
  std::shared_ptr<Attachment> line = source.note(running_node());
  Write forgotten;
  const std::lock_guard lock(writes_mutex);
  writes().push_back(
      {IntrusivePtr<Storage>::share(t.storage()), t.impl()->version() + 1, std::move(line)});
  if (writes().size() > kWritesNoted) {
    forgotten = std::move(writes().front());
    writes().pop_front();
  }
}

std::string line_that_wrote(const Tensor& t, uint32_t saved) {
  const std::lock_guard lock(writes_mutex);
  for (const Write& w : writes())
    if (w.storage.get() == t.storage() && w.version > saved && source.describe)
      return source.describe(*w.line);
  return {};
}

}  // namespace lamina::autograd

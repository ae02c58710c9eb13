// Anomaly mode: nodes remember the line of the forward call that made them, writes in place the
// line that wrote, and a gradient with NaN is an error. Slow; for looking for faults.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "lamina/autograd/hooks.h"

namespace lamina::autograd {

class Node;

extern std::atomic<bool> g_anomaly;
inline bool anomaly_enabled() { return g_anomaly.load(std::memory_order_relaxed); }
bool anomaly_checks_nan();
void set_anomaly(bool enabled, bool check_nan);

// What the language above knows of the line that runs. border/ sets it.
struct AnomalySource {
  // Notes the line; `running` is the node whose backward runs it, null outside of one.
  std::shared_ptr<Attachment> (*note)(Node* running) = nullptr;
  std::string (*describe)(const Attachment& noted) = nullptr;
  void (*warn)(const Node& failed) = nullptr;
};
void set_anomaly_source(AnomalySource source);

void note_forward_call(Node& node);
// Tells of the forward call of a node whose backward has failed.
void warn_of_failure(const Node& node);

// Every recorded write in place notes its line; line_that_wrote finds the first one that took `t`
// past version `saved`; empty where none was noted.
void note_write(const Tensor& t);
std::string line_that_wrote(const Tensor& t, uint32_t saved);

}  // namespace lamina::autograd

// What the keys Conjugate and Negative do with every operator that does not know them: operands are
// written out first; results of writes are marked back.
#include "lamina/dispatch/library.h"
#include "lamina/kernels/generated_support.h"
#include "lamina/ops.h"
#include "lamina/transforms/rules.h"

namespace lamina::dispatch {

namespace {

Tensor written_out(const Tensor& t, DispatchKey key) {
  // The views take the mark off without asking this key again.
  return key == DispatchKey::Conjugate ? ops::_conj_physical(ops::_conj(t))
                                       : ops::neg(ops::_neg_view(t));
}

// Stores `value` into the bytes of a marked tensor so that reading it through the mark gives
// `value`.
void store_marked(const Tensor& marked, const Tensor& value, DispatchKey key) {
  if (key == DispatchKey::Conjugate)
    copy_values(ops::_conj(marked), ops::conj_physical(value));
  else
    copy_values(ops::_neg_view(marked), ops::neg(value));
}

void write_out_operands(const Operator& op, KeySet keys, Stack& stack) {
  const DispatchKey key = keys.highest();
  const ExcludeGuard below(kAutogradKeys);
  struct Written {
    Tensor marked, plain;
  };
  std::vector<Written> targets;
  for (size_t i = 0; i < stack.size(); ++i) {
    if (auto* t = std::get_if<Tensor>(&stack[i]); t && t->keys().has(key)) {
      Tensor plain = written_out(*t, key);
      if (i < 64 && op.info().written >> i & 1) targets.push_back({*t, plain});
      *t = plain;
    } else if (auto* list = std::get_if<std::vector<Tensor>>(&stack[i])) {
      for (Tensor& item : *list)
        if (item.keys().has(key)) item = written_out(item, key);
    }
  }
  op.call_boxed(keys - key, stack);
  for (const Written& w : targets) {
    store_marked(w.marked, w.plain, key);
    for (Value& v : stack)
      if (auto* t = std::get_if<Tensor>(&v); t && t->is_same(w.plain)) *t = w.marked;
  }
}

}  // namespace

BoxedKernel builtin_fallback(DispatchKey key) {
  if (key == DispatchKey::FuncTorchBatched) return &transforms::batched_kernel;
  return key == DispatchKey::Conjugate || key == DispatchKey::Negative ? &write_out_operands
                                                                       : nullptr;
}

}  // namespace lamina::dispatch

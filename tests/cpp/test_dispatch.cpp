#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lamina/dispatch/library.h"
#include "lamina/event/event.h"
#include "lamina/lamina.h"

using namespace lamina;
using dispatch::Library;
using dispatch::Operator;
using dispatch::Stack;

namespace {

using MmSignature = Tensor(const Tensor&, const Tensor&);
using UnarySignature = Tensor(const Tensor&);

Tensor vector_of(std::vector<float> v) { return from_values(v, {static_cast<int64_t>(v.size())}); }
std::vector<float> values(const Tensor& t) {
  const Tensor c = ops::contiguous(t);
  return {c.data_as<float>(), c.data_as<float>() + c.numel()};
}

// What boxed kernels of these tests note down: they are plain functions.
std::vector<std::string> g_seen;

void note_and_pass_on(const Operator& op, KeySet keys, Stack& stack) {
  g_seen.push_back(op.full_name());
  op.call_boxed(keys & KeySet::below(keys.highest()), stack);
}
void return_a_number(const Operator&, KeySet, Stack& stack) {
  const dispatch::ExcludeGuard not_again(DispatchKey::Functionalize);
  stack.clear();
  stack.push_back(ops::full({1}, 42.0));
}
void return_another_number(const Operator&, KeySet, Stack& stack) {
  const dispatch::ExcludeGuard not_again(DispatchKey::Functionalize);
  stack.clear();
  stack.push_back(ops::full({1}, 43.0));
}
Tensor typed_kernel(KeySet, const Tensor& self) { return ops::full(self.sizes(), 7.0); }

template <class F>
std::string message_of(F f, ErrorKind kind) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(KeySet, Algebra) {
  const KeySet s = KeySet::of(DispatchKey::CPU, DispatchKey::AutogradCPU);
  EXPECT_TRUE(s.has(DispatchKey::CPU));
  EXPECT_FALSE(s.has(DispatchKey::Meta));
  EXPECT_EQ(s.highest(), DispatchKey::AutogradCPU);
  EXPECT_EQ((s - DispatchKey::AutogradCPU).highest(), DispatchKey::CPU);
  EXPECT_EQ(s, strided_keys(DeviceType::CPU));
  EXPECT_EQ(KeySet().highest(), DispatchKey::Undefined);
  EXPECT_TRUE(KeySet(DispatchKey::Undefined).empty());
  EXPECT_TRUE((s & KeySet::below(DispatchKey::AutogradCPU)) == KeySet(DispatchKey::CPU));
  EXPECT_EQ(s | s, s);
}

TEST(KeySet, LayersLieAboveBackends) {
  for (const DispatchKey backend : {DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::Meta})
    for (const DispatchKey layer :
         {DispatchKey::BackendSelect, DispatchKey::Functionalize, DispatchKey::ADInplaceOrView,
          DispatchKey::AutogradCPU, DispatchKey::AutocastCPU, DispatchKey::PythonDispatcher})
      EXPECT_LT(static_cast<int>(backend), static_cast<int>(layer));
  EXPECT_TRUE(kBackendKeys.has(DispatchKey::SparseCPU));
  EXPECT_FALSE(kBackendKeys.has(DispatchKey::BackendSelect));
}

TEST(KeySet, NamesGoBothWays) {
  for (int i = 1; i < kNumDispatchKeys; ++i) {
    const auto key = static_cast<DispatchKey>(i);
    EXPECT_EQ(parse_dispatch_key(name(key)), key);
  }
  EXPECT_EQ(parse_dispatch_key("CompositeImplicitAutograd"),
            DispatchKey::CompositeImplicitAutograd);
  EXPECT_TRUE(
      contains(message_of([] { parse_dispatch_key("Nonsense"); }, ErrorKind::Value), "Nonsense"));
}

TEST(Guards, AddAndTakeKeysOfTheThread) {
  const Tensor x = vector_of({1, -2});
  const KeySet plain = dispatch::keys_of_all(x);
  {
    const dispatch::IncludeGuard more(DispatchKey::AutocastCPU);
    EXPECT_TRUE(dispatch::keys_of_all(x).has(DispatchKey::AutocastCPU));
    {
      const dispatch::ExcludeGuard less(KeySet(DispatchKey::AutocastCPU) | kAutogradKeys);
      EXPECT_EQ(dispatch::keys_of_all(x), KeySet(DispatchKey::CPU));  // taking out wins
    }
    EXPECT_TRUE(dispatch::keys_of_all(x).has(DispatchKey::AutocastCPU));
  }
  EXPECT_EQ(dispatch::keys_of_all(x), plain);
}

TEST(Calls, TypedAndRedispatched) {
  const Tensor a = from_values<float>({1, 2, 3, 4}, {2, 2});
  const Tensor leaf = requires_grad(ops::clone(a));
  const Tensor whole = dispatch::call<MmSignature>(op::mm, dispatch::keys_of_all(leaf, a), leaf, a);
  EXPECT_EQ(values(whole), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_TRUE(whole.requires_grad());
  // What a layer has left is what lies below it: nothing records there.
  const Tensor below =
      dispatch::call<MmSignature>(op::mm, dispatch::keys_of_all(leaf, a) & kBelowAutograd, leaf, a);
  EXPECT_EQ(values(below), values(whole));
  EXPECT_FALSE(below.requires_grad());
}

TEST(Calls, BoxedGivesWhatTypedGives) {
  const Operator* op = dispatch::find_operator("aten::add.Tensor");
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op, &op::add_Tensor);
  Stack stack{vector_of({1, 2}), vector_of({10, 20}), Scalar(3)};
  op->call_boxed(stack);
  ASSERT_EQ(stack.size(), 1u);
  EXPECT_EQ(values(std::get<Tensor>(stack[0])), (std::vector<float>{31, 62}));
  EXPECT_EQ(dispatch::find_operator("aten::add.Nonsense"), nullptr);
}

TEST(Calls, BoxedRefusesWrongStacks) {
  Stack few{vector_of({1})};
  EXPECT_TRUE(contains(message_of([&] { op::add_Tensor.call_boxed(few); }, ErrorKind::Runtime),
                       "number of boxed arguments"));
  Stack wrong{vector_of({1}), std::string("two"), Scalar(1)};
  EXPECT_TRUE(contains(message_of([&] { op::add_Tensor.call_boxed(wrong); }, ErrorKind::Type),
                       "argument 1"));
  Stack none;
  message_of([&] { op::mm.call_boxed(none); }, ErrorKind::NotImplemented);
}

TEST(Calls, BoxedListsOptionalsAndManyResults) {
  Stack stack{std::vector<Tensor>{vector_of({1}), vector_of({2})}, int64_t{0}};
  dispatch::find_operator("aten::cat")->call_boxed(stack);
  EXPECT_EQ(values(std::get<Tensor>(stack.at(0))), (std::vector<float>{1, 2}));
  Stack max{from_values<float>({1, 5, 7, 2}, {2, 2}), int64_t{1}, false};
  dispatch::find_operator("aten::max.dim")->call_boxed(max);
  ASSERT_EQ(max.size(), 2u);
  EXPECT_EQ(values(std::get<Tensor>(max[0])), (std::vector<float>{5, 7}));
  EXPECT_EQ(std::get<Tensor>(max[1]).data_as<int64_t>()[0], 1);
}

TEST(Library, BoxedFallbackSeesEveryOperatorThenGoes) {
  const Tensor a = vector_of({1, 2});
  {
    Library library("test");
    library.fallback(DispatchKey::Functionalize, note_and_pass_on);
    const dispatch::IncludeGuard in(DispatchKey::Functionalize);
    g_seen.clear();
    EXPECT_EQ(values(ops::neg(a)), (std::vector<float>{-1, -2}));
    EXPECT_EQ(g_seen, std::vector<std::string>{"aten::neg"});
  }
  g_seen.clear();
  const dispatch::IncludeGuard in(DispatchKey::Functionalize);
  EXPECT_TRUE(
      contains(message_of([&] { ops::neg(a); }, ErrorKind::NotImplemented), "Functionalize"));
  EXPECT_TRUE(g_seen.empty());
}

TEST(Library, FallbacksGoWithTheirOwnLibrary) {
  const Tensor a = vector_of({1, 2});
  auto first = std::make_unique<Library>("test", "first");
  first->fallback(DispatchKey::Functionalize, return_a_number);
  Library second("test", "second");
  second.fallback(DispatchKey::Functionalize, return_another_number);
  const dispatch::IncludeGuard in(DispatchKey::Functionalize);
  EXPECT_EQ(values(ops::neg(a)), std::vector<float>{43});
  first.reset();
  EXPECT_EQ(values(ops::neg(a)), std::vector<float>{43});
}

TEST(Library, KernelsGoWithTheirOwnLibrary) {
  auto first = std::make_unique<Library>("test");
  const Operator& op = first->define("whose(Tensor x) -> Tensor");
  auto second = std::make_unique<Library>("test");
  Library third("test");
  second->implement("whose", DispatchKey::CPU, return_a_number);
  third.implement("whose", DispatchKey::CPU, return_another_number);
  Stack stack{vector_of({1})};
  op.call_boxed(stack);
  EXPECT_EQ(values(std::get<Tensor>(stack[0])), std::vector<float>{43});
  second.reset();  // registered from the same place, but not by the same library
  stack = {vector_of({1})};
  op.call_boxed(stack);
  EXPECT_EQ(values(std::get<Tensor>(stack[0])), std::vector<float>{43});
}

TEST(Library, FallthroughLetsALayerPass) {
  const Tensor a = vector_of({1, 2});
  Library library("aten");
  library.fallthrough("neg", DispatchKey::Functionalize);
  const dispatch::IncludeGuard in(DispatchKey::Functionalize);
  EXPECT_EQ(values(ops::neg(a)), (std::vector<float>{-1, -2}));
  EXPECT_THROW(ops::abs(a), Error);  // no other operator
  library.fallthrough(DispatchKey::Functionalize);
  EXPECT_EQ(values(ops::abs(a)), (std::vector<float>{1, 2}));
}

TEST(Library, DefinesAndImplements) {
  const Operator* kept = nullptr;
  {
    Library library("test", "here.cpp:1");
    const Operator& op = library.define("made_up(Tensor x, int n=1) -> Tensor");
    kept = &op;
    EXPECT_EQ(dispatch::find_operator("test::made_up"), &op);
    EXPECT_STREQ(op.info().schema, "test::made_up(Tensor x, int n=1) -> Tensor");
    EXPECT_EQ(op.info().num_arguments, 2u);
    const auto names = dispatch::all_operator_names();
    EXPECT_NE(std::find(names.begin(), names.end(), "test::made_up"), names.end());

    Stack stack{vector_of({1}), int64_t{1}};
    const std::string missing =
        message_of([&] { op.call_boxed(stack); }, ErrorKind::NotImplemented);
    EXPECT_TRUE(contains(missing, "test::made_up"));
    library.implement("made_up", DispatchKey::CPU, return_a_number);
    EXPECT_TRUE(op.has_kernel(DispatchKey::CPU));
    op.call_boxed(stack);
    EXPECT_EQ(values(std::get<Tensor>(stack[0])), std::vector<float>{42});
    EXPECT_TRUE(contains(
        message_of([&] { library.define("made_up(Tensor x) -> Tensor"); }, ErrorKind::Runtime),
        "exists"));
  }
  EXPECT_EQ(dispatch::find_operator("test::made_up"), nullptr);
  EXPECT_FALSE(kept->has_kernel(DispatchKey::CPU));  // the handle itself stays valid
}

TEST(Library, KernelBeforeSchema) {
  Library kernels("test");
  kernels.implement("later", DispatchKey::CPU, return_a_number);
  EXPECT_EQ(dispatch::find_operator("test::later"), nullptr);
  {
    Library schemas("test");
    const Operator& op = schemas.define("later(Tensor x) -> Tensor");
    Stack stack{vector_of({1})};
    op.call_boxed(stack);
    EXPECT_EQ(values(std::get<Tensor>(stack[0])), std::vector<float>{42});
  }
  EXPECT_EQ(dispatch::find_operator("test::later"), nullptr);
  Library again("test");
  again.define("later(Tensor x) -> Tensor");  // the name is free again
}

TEST(Library, RefusesMalformedSchemas) {
  Library library("test");
  for (const char* schema :
       {"", "noargs", "f(Tensor x", "f(Tensor x)", "(Tensor x) -> Tensor",
        "a b(Tensor x) -> Tensor", "f(Tensor x] -> Tensor", "f(Tensor x) - > Tensor"}) {
    const std::string message = message_of([&] { library.define(schema); }, ErrorKind::Runtime);
    EXPECT_TRUE(contains(message, "Library.define")) << schema;
  }
}

TEST(Library, OverridesAKernelOfTheOpList) {
  const Tensor a = vector_of({1, 2});
  {
    Library library("aten");
    library.implement_typed("neg", DispatchKey::CPU,
                            reinterpret_cast<dispatch::RawKernel>(typed_kernel));
    EXPECT_EQ(values(ops::neg(a)), (std::vector<float>{7, 7}));
    library.implement("neg", DispatchKey::CPU, return_a_number);  // the newest wins, boxed or not
    EXPECT_EQ(values(ops::neg(a)), std::vector<float>{42});
    EXPECT_THROW(library.implement_typed("nonsense", DispatchKey::CPU, nullptr), Error);
  }
  EXPECT_EQ(values(ops::neg(a)), (std::vector<float>{-1, -2}));
}

TEST(Missing, NamesOperatorBackendAndBackends) {
  Library library("test");
  const Operator& op = library.define("nowhere.there(Tensor x) -> Tensor");
  library.implement("nowhere.there", DispatchKey::SparseCPU, return_a_number);
  library.implement("nowhere.there", DispatchKey::Meta, return_a_number);
  Stack stack{vector_of({1})};
  const std::string message = message_of([&] { op.call_boxed(stack); }, ErrorKind::NotImplemented);
  EXPECT_TRUE(contains(message, "'test::nowhere.there'")) << message;
  EXPECT_TRUE(contains(message, "'CPU'")) << message;
  EXPECT_TRUE(contains(message, "[Meta, SparseCPU]")) << message;
  const dispatch::IncludeGuard cuda(DispatchKey::CUDA);
  const std::string typed =
      message_of([] { ops::mm(ops::ones({1, 1}), ops::ones({1, 1})); }, ErrorKind::NotImplemented);
  EXPECT_TRUE(contains(typed, "CUDA")) << typed;
}

struct Recorder final : dispatch::Observer {
  void on_call(const Operator& op, KeySet, dispatch::RawKernel) override {
    events.push_back(op.full_name() + " {");
  }
  void on_return(const Operator& op) override { events.push_back("} " + op.full_name()); }
  std::vector<std::string> events;
};

TEST(Observer, SeesNestedCallsAndReturnsUnderErrors) {
  const Tensor a = from_values<float>({1, 2, 3, 4}, {2, 2});
  Recorder recorder;
  {
    const dispatch::ObserverGuard watch(&recorder);
    ops::matmul(a, a);
  }
  ASSERT_GE(recorder.events.size(), 4u);
  EXPECT_EQ(recorder.events.front(), "aten::matmul {");
  EXPECT_EQ(recorder.events.back(), "} aten::matmul");
  EXPECT_NE(std::find(recorder.events.begin(), recorder.events.end(), "aten::mm {"),
            recorder.events.end());
  const size_t seen = recorder.events.size();
  ops::matmul(a, a);  // the guard has gone
  EXPECT_EQ(recorder.events.size(), seen);

  recorder.events.clear();
  const dispatch::ObserverGuard watch(&recorder);
  EXPECT_THROW(ops::mm(a, ops::ones({3, 3})), Error);
  int depth = 0;
  for (const std::string& e : recorder.events) depth += e.back() == '{' ? 1 : -1;
  EXPECT_EQ(depth, 0);
}

struct ValueRecorder final : dispatch::Observer, dispatch::ValueReader {
  void on_call(const Operator&, KeySet, dispatch::RawKernel) override {}
  void on_return(const Operator&) override {}
  ValueReader* values() override { return this; }
  void begin(bool of_results) override {
    in_results = of_results;
    stack.clear();
  }
  void none() override { stack.emplace_back(); }
  void tensor(const Tensor& t) override { stack.emplace_back(t); }
  void tensors(TensorList l) override {
    stack.emplace_back(std::vector<Tensor>(l.begin(), l.end()));
  }
  void scalar(const Scalar& s) override { stack.emplace_back(s); }
  void text(std::string_view s) override { stack.emplace_back(std::string(s)); }
  void integers(IntList l) override {
    stack.emplace_back(std::vector<int64_t>(l.begin(), l.end()));
  }
  void reals(ListView<double> l) override {
    stack.emplace_back(std::vector<double>(l.begin(), l.end()));
  }
  void other(const dispatch::Value& v) override { stack.push_back(v); }
  void end() override { (in_results ? results : arguments).push_back(std::move(stack)); }
  std::vector<Stack> arguments, results;
  Stack stack;
  bool in_results = false;
};

TEST(Observer, GetsArgumentsAndResultsWhereItWantsThem) {
  const Tensor a = from_values<float>({1, 2, 3, 4}, {2, 2});
  ValueRecorder recorder;
  const dispatch::ObserverGuard watch(&recorder);
  const Tensor sum = ops::add(a, Scalar(2), Scalar(1));
  ASSERT_FALSE(recorder.results.empty());
  EXPECT_EQ(recorder.arguments.size(), recorder.results.size());
  EXPECT_TRUE(std::get<Tensor>(recorder.arguments.front().at(0)).is_same(a));
  EXPECT_EQ(std::get<Scalar>(recorder.arguments.front().at(1)).to_int(), 2);
  EXPECT_TRUE(std::get<Tensor>(recorder.results.back().at(0)).is_same(sum));
  const auto [values, indices] = ops::max(a, int64_t{0}, false);
  EXPECT_EQ(recorder.results.back().size(), 2u);
  EXPECT_THROW(ops::mm(a, ops::ones({3, 3})), Error);
  EXPECT_GT(recorder.arguments.size(), recorder.results.size());
}

TEST(Event, KernelsChunksAndMemoryReachTheListener) {
  struct Heard final : event::Listener {
    void on_kernel(const event::Kernel& k) override { kernels.emplace_back(k.family); }
    void on_refusal(const char* kernel, const char*) override { refused.emplace_back(kernel); }
    void on_memory(const void*, int64_t bytes, bool) override { live += bytes; }
    std::vector<std::string> kernels, refused;
    int64_t live = 0;
  } heard;
  const Tensor a = ops::ones({300, 300});
  event::t_listener = &heard;
  Tensor b = ops::mm(a, a);
  const int64_t with_result = heard.live;
  b = Tensor();
  event::t_listener = nullptr;
  EXPECT_EQ(heard.kernels, std::vector<std::string>{"gemm"});
  EXPECT_GE(with_result, 300 * 300 * 4);
  EXPECT_EQ(heard.live, 0);
  ops::mm(a, a);
  EXPECT_EQ(heard.kernels.size(), 1u);
}

TEST(Observer, SeesBoxedKernels) {
  Library library("test");
  const Operator& op = library.define("boxed(Tensor x) -> Tensor");
  library.implement("boxed", DispatchKey::CPU, return_a_number);
  Recorder recorder;
  Stack stack{vector_of({1})};
  const dispatch::ObserverGuard watch(&recorder);
  op.call_boxed(stack);
  ASSERT_FALSE(recorder.events.empty());
  EXPECT_EQ(recorder.events.front(), "test::boxed {");
  EXPECT_EQ(recorder.events.back(), "} test::boxed");
}

// A build-time operator whose kernel was replaced by a boxed one: announced once, however called.
TEST(Observer, SeesBoxedKernelsOfBuiltInOperatorsOnce) {
  Library library("aten");
  library.implement("mm", DispatchKey::AutogradCPU, return_a_number);
  const Tensor a = ops::ones({1, 1});
  Recorder recorder;
  const auto calls = [&] {
    return std::count(recorder.events.begin(), recorder.events.end(), "aten::mm {");
  };
  {
    Stack stack{a, a};
    const dispatch::ObserverGuard watch(&recorder);
    op::mm.call_boxed(stack);
  }
  EXPECT_EQ(calls(), 1);
  recorder.events.clear();
  Tensor product;
  {
    const dispatch::ObserverGuard watch(&recorder);
    product = ops::mm(a, a);
  }
  EXPECT_EQ(values(product), std::vector<float>{42});
  EXPECT_EQ(calls(), 1);
  EXPECT_EQ(recorder.events.back(), "} aten::mm");
}

TEST(Table, ShowsWhatServesEachKey) {
  const std::string matmul = op::matmul.dump_table();
  EXPECT_TRUE(contains(matmul, "\nCPU: registered at ")) << matmul;
  const auto line = [](const std::string& table, std::string_view key) {
    const size_t at = ("\n" + table).find("\n" + std::string(key) + ": ");
    return at == std::string::npos ? std::string() : table.substr(at, table.find('\n', at) - at);
  };
  EXPECT_TRUE(contains(line(matmul, "CPU"), "[math kernel]"));
  EXPECT_TRUE(contains(line(matmul, "AutogradCPU"), "[math kernel]"));
  const std::string mm = op::mm.dump_table();
  EXPECT_TRUE(contains(line(mm, "CPU"), "[kernel]")) << mm;
  EXPECT_TRUE(contains(line(mm, "AutogradCPU"), "[autograd kernel]")) << mm;
  EXPECT_TRUE(line(mm, "SparseCPU").empty()) << mm;
}

TEST(Dispatch, UndefinedTensorsRaise) {
  const Tensor a = ops::ones({2}), none;
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing raised";
  };
  EXPECT_TRUE(contains(message([&] { ops::add(a, none); }), "add: argument 'other'"));
  EXPECT_TRUE(contains(message([&] { ops::mm(none, a); }), "mm: argument 'self'"));
  EXPECT_TRUE(contains(message([&] { ops::relu(none); }), "relu: argument 'self'"));
  EXPECT_TRUE(contains(message([&] { ops::view(none, {1}); }), "view: argument 'self'"));
  EXPECT_TRUE(contains(message([&] { ops::matmul(a, none); }), "matmul: argument 'other'"));
  EXPECT_TRUE(contains(message([&] { ops::add_out(none, a, a); }), "argument 'out'"));
  const std::vector<Tensor> list = {a, none};
  EXPECT_TRUE(contains(message([&] { ops::cat(list); }), "cat: argument 'tensors'"));
  // Where a tensor may be absent it may be undefined.
  EXPECT_EQ(ops::clamp(a, none, a).numel(), 2);
}

TEST(Meta, ComputesShapesOnly) {
  const Tensor a = ops::empty({2, 3}, ScalarType::Float32, std::nullopt, kMeta);
  const Tensor b = ops::empty({3, 4}, ScalarType::Float32, std::nullopt, kMeta);
  const Tensor c = ops::mm(a, b);
  EXPECT_TRUE(c.is_meta());
  EXPECT_EQ(c.sizes(), (IntList{2, 4}));
  EXPECT_EQ(c.data(), nullptr);
}

}  // namespace

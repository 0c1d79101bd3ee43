#include "tools/driver/gate.h"

#include <atomic>
#include <cmath>
#include <thread>

#include "lib/support/error.h"
#include "test/catch.h"
#include "test/lib/runtime/fake_runtime.h"

namespace mlc::driver {
namespace {

using namespace std::chrono_literals;

constexpr GateVerdict kPass = GateVerdict::kPass, kFail = GateVerdict::kFail,
                      kNeither = GateVerdict::kNotApplicable;

// A model that passes every check, and the parameters that tests change.
struct Fixture {
  std::shared_ptr<runtime::FakePlan> plan = std::make_shared<runtime::FakePlan>();
  std::shared_ptr<runtime::FakePlan> engine = std::make_shared<runtime::FakePlan>();
  std::shared_ptr<runtime::FakeRuntime> runtime = std::make_shared<runtime::FakeRuntime>(plan);
  GateSubject subject;
  GateOptions options;
  Diagnostics diagnostics;
  std::chrono::steady_clock::time_point now{1h};
  int64_t resident = 50'000'000;
  int64_t asked = 0;  // number of calls

  Fixture() {
    plan->units = {{runtime::Units::kCpu, 10}, {runtime::Units::kAll, 5}};
    plan->placements = {{"y", "mul", runtime::Device::kAne, {}, {}}};
    subject.model = "a.mlpackage";
    subject.bytes = 1'000'000;
    subject.runtime = runtime;
    subject.reference = std::make_shared<runtime::FakeModel>(engine);
    subject.inputs = {{"x", Tensor::Vector<float>({1, 3})}};
    subject.compiled = [this] { return CompiledModel{.path = "a.mlmodelc", .made = asked++ == 0}; };
    options.units = runtime::Units::kAll;
    options.cycles = 1000;
    options.p99_ms = 20;
    options.duration = 2s;
    options.resident = [this] { return resident; };
    options.now = [this] { return now += 1ms; };
  }
  std::vector<GateCheck> Run(char gate) {
    switch (gate) {
      case 'a':
        return GateA(subject, options);
      case 'b':
        return GateB(subject, options, diagnostics);
      case 'c':
        return GateC(subject, options);
      default:
        return GateD(subject, options);
    }
  }
};

// A model that returns fixed outputs.
class Saying : public runtime::LoadedModel {
 public:
  using Say = std::function<std::map<std::string, Tensor>()>;
  explicit Saying(Say say, runtime::Schema schema = {})
      : say_(std::move(say)), schema_(std::move(schema)) {}
  const runtime::Schema& schema() const override { return schema_; }
  std::map<std::string, Tensor> Predict(const std::map<std::string, Tensor>&, runtime::ModelState*,
                                        runtime::PredictTimings*) override {
    return say_();
  }
  std::unique_ptr<runtime::ModelState> NewState() override { return nullptr; }
  std::vector<runtime::OperationPlacement> Placements(std::string*) override { return {}; }

 private:
  Say say_;
  runtime::Schema schema_;
};
struct SayingRuntime : runtime::FakeRuntime {
  explicit SayingRuntime(Saying::Say say, runtime::Schema schema = {})
      : FakeRuntime(nullptr), say(std::move(say)), schema(std::move(schema)) {}
  std::unique_ptr<runtime::LoadedModel> Load(const std::filesystem::path&,
                                             const runtime::LoadOptions&) override {
    return std::make_unique<Saying>(say, schema);
  }
  Saying::Say say;
  runtime::Schema schema;
};
Tensor Text(const char* text) { return Tensor::Strings({1}, {text}); }

struct Row {
  const char* title;
  char gate;
  std::function<void(Fixture&)> change;
  const char* check;  // the only check with another verdict than pass
  GateVerdict verdict;
  const char* text = "";  // part of the text of this check
};

const Row kRows[] = {
    {"as it should be", 'a', [](Fixture&) {}, "", kPass},
    {"leaks 1 kB in each load", 'a',
     [](Fixture& f) { f.plan->loading = [&f](int) { f.resident += 1000; }; }, "memory growth",
     kFail, "median slope"},
    {"leaks 99 bytes", 'a', [](Fixture& f) { f.plan->loading = [&f](int) { f.resident += 99; }; },
     "", kPass},
    {"leaks 40 kB each time it compiles", 'a',
     [](Fixture& f) { f.runtime->compiling = [&f] { f.resident += 40'000; }; }, "memory growth",
     kFail},
    {"grows while it warms up", 'a',
     [](Fixture& f) { f.plan->loading = [&f](int n) { f.resident += n < 100 ? 100'000 : 0; }; }, "",
     kPass},
    {"too few cycles", 'a', [](Fixture& f) { f.options.cycles = 25; }, "memory growth", kNeither,
     "20 cycles after the warm-up"},
    {"too few cycles for the cache", 'a', [](Fixture& f) { f.options.cycles = 5; }, "cache hits",
     kNeither, "requires at least 10 cycles"},
    {"the cache never has it", 'a',
     [](Fixture& f) {
       f.subject.compiled = [] { return CompiledModel{.path = "a.mlmodelc", .made = true}; };
     },
     "cache hits", kFail, "0 of 1000"},
    {"compiles for 6 seconds", 'a',
     [](Fixture& f) { f.runtime->compiling = [&f] { f.now += 6s; }; }, "compile p99", kFail,
     "of 50 times"},
    {"which 100 MB may", 'a',
     [](Fixture& f) {
       f.subject.bytes = 100'000'000;
       f.runtime->compiling = [&f] { f.now += 6s; };
     },
     "", kPass},
    {"but not for 11 seconds", 'a',
     [](Fixture& f) {
       f.subject.bytes = 100'000'000;
       f.runtime->compiling = [&f] { f.now += 11s; };
     },
     "compile p99", kFail},
    {"600 MB have no limit", 'a', [](Fixture& f) { f.subject.bytes = 600'000'000; }, "compile p99",
     kNeither, "600 MB"},
    {"hangs when it is loaded", 'a',
     [](Fixture& f) {
       f.options.load_timeout = 50ms;
       f.plan->loading = [](int n) {
         if (n == 700) std::this_thread::sleep_for(500ms);
       };
     },
     "cycles", kFail, "cycle 701: no result within 50 ms"},
    {"does not load once", 'a',
     [](Fixture& f) {
       f.plan->loading = [](int n) {
         if (n == 700) throw Error("runtime-failed", "it would not");
       };
     },
     "cycles", kFail, "cycle 701: it would not"},

    {"as it should be", 'b', [](Fixture&) {}, "", kPass},
    {"another interface", 'b',
     [](Fixture& f) {
       f.engine->has_state = true;
       f.subject.reference = std::make_shared<runtime::FakeModel>(f.engine);
       f.engine->has_state = false;
     },
     "schema", kFail, "the runtime has no state \"s\""},
    {"outputs of another type than it says", 'b',
     [](Fixture& f) {
       const runtime::Schema schema{
           .outputs = {{.name = "y", .dtype = DType::kFp32, .dims = {-1}}}};
       f.subject.runtime = std::make_shared<SayingRuntime>(
           [] {
             return std::map<std::string, Tensor>{{"y", Tensor::Vector<int32_t>({1, 3})}};
           },
           schema);
       f.subject.reference = std::make_shared<Saying>(
           [] {
             return std::map<std::string, Tensor>{{"y", Tensor::Vector<int32_t>({1, 3})}};
           },
           schema);
     },
     "schema", kFail, "output \"y\" is int32 [2], but is declared as fp32 [-1]"},
    {"wrong after it was loaded anew", 'b',
     [](Fixture& f) {
       f.plan->factor = [plan = f.plan.get()](int n) {
         return n > 0 && n < 30 && plan->loads == 3 ? 3.f : 2.f;
       };
     },
     "timeout", kFail, "the next prediction is wrong: output \"y\""},
    {"too slow", 'b', [](Fixture& f) { f.plan->units[runtime::Units::kAll] = 21; }, "p99", kFail,
     "of 100 predictions"},
    {"computes something else", 'b',
     [](Fixture& f) { f.engine->factor = [](int) { return 2.1f; }; }, "parity", kFail,
     "(budget max error"},
    {"two NaN agree in nothing", 'b',
     [](Fixture& f) { f.engine->factor = f.plan->factor = [](int) { return std::nanf(""); }; },
     "parity", kFail, "output \"y\" contains only NaN"},
    {"one text for another", 'b',
     [](Fixture& f) {
       f.subject.runtime = std::make_shared<SayingRuntime>([] {
         return std::map<std::string, Tensor>{{"t", Text("a")}};
       });
       f.subject.reference = std::make_shared<Saying>([] {
         return std::map<std::string, Tensor>{{"t", Text("b")}};
       });
     },
     "parity", kFail, "output \"t\""},

    {"as it should be", 'c', [](Fixture&) {}, "", kPass},
    {"hardly faster than the CPU", 'c',
     [](Fixture& f) { f.plan->units[runtime::Units::kAll] = 7.2; }, "speed", kFail,
     "ms, on the CPU "},
    {"one of two operations on the CPU", 'c',
     [](Fixture& f) {
       f.plan->placements.push_back({"z", "add", runtime::Device::kCpu, {}, {}});
     },
     "coverage", kFail, "1 of 2 on all; elsewhere by rule of mlc explain: no known rule 1"},
    {"two of three operations on the CPU, one for a known reason", 'c',
     [](Fixture& f) {
       f.plan->placements.push_back({"z", "add", runtime::Device::kCpu, {}, {}});
       f.plan->placements.push_back({"t", "tan", runtime::Device::kCpu, {}, {}});
       f.subject.refused["t"] = "no-function";
     },
     "coverage", kFail,
     "1 of 3 on all; elsewhere by rule of mlc explain: no known rule 1, no-function 1"},
    {"nobody says where", 'c',
     [](Fixture& f) {
       f.plan->placements = {{"y", "mul", runtime::Device::kUnknown, {}, {}}};
     },
     "coverage", kNeither},

    {"as it should be", 'd', [](Fixture&) {}, "", kPass},
    {"leaks 1 kB in each prediction", 'd',
     [](Fixture& f) { f.plan->before = [&f](int) { f.resident += 1000; }; }, "memory growth",
     kFail},
    {"grows by less than an allocator may, in few predictions", 'd',
     [](Fixture& f) {
       f.options.now = [&f] { return f.now += 10ms; };
       f.plan->before = [&f](int) { f.resident += 1000; };
     },
     "", kPass},
    {"one of 20 fails", 'd',
     [](Fixture& f) {
       f.plan->before = [](int n) {
         if (n % 20 == 5) throw Error("runtime-failed", "it would not");
       };
     },
     "success rate", kFail, "prediction 6: it would not"},
    {"one of 500 fails", 'd',
     [](Fixture& f) {
       f.plan->before = [](int n) {
         if (n % 500 == 5) throw Error("runtime-failed", "it would not");
       };
     },
     "", kPass},
    {"other numbers in the end", 'd',
     [](Fixture& f) { f.plan->factor = [](int n) { return n < 1900 ? 2.f : 2.1f; }; }, "numbers",
     kFail, "prediction 1901: output \"y\""},
    {"NaN all the time", 'd',
     [](Fixture& f) { f.plan->factor = [](int) { return std::nanf(""); }; }, "numbers", kFail,
     "output \"y\" contains only NaN"},
    {"NaN of mlc's engine", 'd',
     [](Fixture& f) {
       f.subject.is_reference = true;
       f.plan->factor = [](int) { return std::nanf(""); };
     },
     "numbers", kFail, "output \"y\" contains only NaN"},
    {"zeros all the time", 'd', [](Fixture& f) { f.plan->factor = [](int) { return 0.f; }; },
     "numbers", kNeither, "no output is conclusive"},
    {"another text in the end", 'd',
     [](Fixture& f) {
       f.subject.runtime =
           std::make_shared<SayingRuntime>([n = std::make_shared<std::atomic<int>>(0)] {
             return std::map<std::string, Tensor>{{"n", Tensor::Vector<float>({1, 2})},
                                                  {"t", Text((*n)++ < 1900 ? "a" : "b")}};
           });
     },
     "numbers", kFail, "output \"t\""},
    {"another bit, within the budget", 'd',
     [](Fixture& f) { f.plan->factor = [](int n) { return n < 1900 ? 2.f : 2.0000002f; }; }, "",
     kPass},
    {"another bit, of mlc's engine", 'd',
     [](Fixture& f) {
       f.subject.is_reference = true;
       f.plan->factor = [](int n) { return n < 1900 ? 2.f : 2.0000002f; };
     },
     "numbers", kFail, "not bit-identical"}};

TEST_CASE("gate: verdicts on both sides of each limit", "[gate]") {
  for (const Row& row : kRows) {
    INFO("gate " << row.gate << ": " << row.title);
    Fixture fixture;
    row.change(fixture);
    const std::vector<GateCheck> checks = fixture.Run(row.gate);
    bool met = row.check[0] == '\0';
    for (const GateCheck& check : checks) {
      INFO(check.name << ": " << check.text);
      if (check.name == row.check) {
        met = true;
        CHECK(Name(check.verdict) == Name(row.verdict));
        CHECK_THAT(check.text, ContainsSubstring(row.text));
      } else if (std::string_view(row.title) == "too few cycles for the cache") {
        CHECK(Name(check.verdict) != "fail");
      } else if (row.verdict != kFail || std::string_view(row.check) != "cycles") {
        CHECK(Name(check.verdict) == "pass");
      }
    }
    CHECK(met);
    CHECK(Together(checks) == row.verdict);
  }
}

TEST_CASE("gate: check c requires Core ML's compute units", "[gate]") {
  for (bool cpu : {false, true}) {
    Fixture fixture;
    fixture.subject.is_reference = !cpu;
    fixture.subject.load.units = cpu ? runtime::Units::kCpu : runtime::Units::kReference;
    for (const GateCheck& check : fixture.Run('c')) CHECK(check.verdict == kNeither);
  }
}

TEST_CASE("gate: an exception fails the check", "[gate]") {
  for (char gate : {'a', 'b', 'c', 'd'}) {
    Fixture fixture;
    fixture.plan->loading = [](int) { throw Error("runtime-failed", "it would not"); };
    const std::vector<GateCheck> checks = fixture.Run(gate);
    CHECK(Together(checks) == kFail);
    CHECK_THAT(checks.at(0).text, ContainsSubstring("it would not"));
  }
}

TEST_CASE("gate: a prediction that hangs fails the check", "[gate]") {
  for (char gate : {'b', 'c', 'd'}) {
    INFO("gate " << gate);
    auto latch = std::make_shared<runtime::Latch>();
    Fixture fixture;
    fixture.options.timeout = 20ms;
    fixture.plan->before = [latch](int n) {
      if (n > 0) latch->Wait();
    };
    const std::vector<GateCheck> checks = fixture.Run(gate);
    latch->Open();
    CHECK(Together(checks) == kFail);
    bool said = false;
    for (const GateCheck& check : checks)
      said = said || (check.verdict == kFail && check.text.find("20 ms") != std::string::npos);
    CHECK(said);
    runtime::Await([&] { return fixture.plan->alive == 0; });
  }
}

TEST_CASE("gate: a compilation that exceeds its time limit keeps its folder until it ends",
          "[gate][guarded]") {
  Fixture fixture;
  auto begun = std::make_shared<runtime::Latch>(), latch = std::make_shared<runtime::Latch>();
  fixture.options.load_timeout = 1ms;
  fixture.runtime->compiling = [begun, latch] { begun->Open(), latch->Wait(); };
  CHECK(fixture.Run('a').at(0).verdict == kFail);
  begun->Wait();
  const std::filesystem::path folder = fixture.runtime->bundle.parent_path();
  CHECK(std::filesystem::exists(folder));
  latch->Open();
  runtime::Await([&] { return !std::filesystem::exists(folder); });
}

TEST_CASE("gate: the reference engine is not compared with itself", "[gate]") {
  Fixture fixture;
  fixture.subject.is_reference = true;
  for (const GateCheck& check : fixture.Run('b')) {
    INFO(check.name << ": " << check.text);
    const bool neither = check.name == "parity";
    CHECK(Name(check.verdict) == (neither ? "not-applicable" : "pass"));
    if (neither) CHECK_THAT(check.text, ContainsSubstring("the reference engine"));
  }
}

TEST_CASE("gate: check b requires the latency limit --p99-ms", "[gate]") {
  Fixture fixture;
  fixture.options.p99_ms = {};
  CHECK_THROWS_WITH(fixture.Run('b'), ContainsSubstring("--p99-ms"));
}

TEST_CASE("gate: overall verdicts of several checks and models", "[gate]") {
  auto check = [](const char* name, GateVerdict verdict) {
    return GateCheck{.name = name, .verdict = verdict};
  };
  CHECK(Together(std::vector<GateCheck>{}) == kNeither);
  CHECK(Together({check("a", kPass), check("b", kPass)}) == kPass);
  CHECK(Together({check("a", kPass), check("b", kNeither)}) == kNeither);
  CHECK(Together({check("a", kNeither), check("b", kFail), check("c", kPass)}) == kFail);
  // For check c, one fast model suffices; coverage is required of all.
  const GateResult fast{"x", "main", "", {check("speed", kPass), check("coverage", kPass)}};
  const GateResult slow{"y", "main", "", {check("speed", kFail), check("coverage", kPass)}};
  const GateResult left{"z", "main", "", {check("speed", kPass), check("coverage", kFail)}};
  CHECK(Together('c', {slow, fast}) == kPass);
  CHECK(Together('c', {slow}) == kFail);
  CHECK(Together('c', {slow, left}) == kFail);
  CHECK(Together('b', {slow, fast}) == kFail);
}

}  // namespace
}  // namespace mlc::driver

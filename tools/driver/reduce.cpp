#include "tools/driver/reduce.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "lib/support/delta_debugging.h"
#include "lib/support/hash.h"
#include "lib/support/input_registry.h"
#include "lib/support/temporary_folder.h"
#include "tools/driver/editable_model.h"
#include "tools/driver/import.h"
#include "tools/driver/test_script.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

using Clock = std::chrono::steady_clock;
using Pointer = EditableModel::Pointer;
using Items = std::set<size_t>;

// Identifies the contents of a file or folder.
std::string HashOf(const fs::path& path) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path.parent_path()))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Xxh3 hash;
  for (const fs::path& file : files)
    hash.Update(file.lexically_relative(path).string() + "\n" + Xxh3OfFile(file) + "\n");
  return hash.Hex();
}

class Reducer {
 public:
  Reducer(const fs::path& model, const ReduceOptions& options, Diagnostics& diagnostics)
      : model_(model),
        options_(options),
        script_(options.script, options.script_timeout, [this] { return Stopped(); }),
        best_(ReadEditable(model, options.data_root, diagnostics)) {}

  ReduceResult Run(Diagnostics& diagnostics) {
    CheckEditableOutput(model_, options_.output, options_.force);
    result_.operations_before = best_->operation_count();
    CheckOriginal();
    do {
      changed_ = false;
      ReduceFunctions();
      for (size_t function = 0; function < best_->functions().size(); ++function)
        ReduceFunction(function);
    } while (changed_ && !Stopped());
    best_->Write(options_.output, options_.force, diagnostics);
    result_.operations = best_->operation_count();
    return result_;
  }

 private:
  bool Stopped() {
    if (result_.end != ReduceResult::End::kMinimal) return true;
    if (options_.interrupted())
      result_.end = ReduceResult::End::kInterrupted;
    else if (options_.time_limit && Clock::now() - begin_ >= *options_.time_limit)
      result_.end = ReduceResult::End::kTimeLimit;
    return result_.end != ReduceResult::End::kMinimal;
  }

  bool Imports(const fs::path& path) const {
    const InputRegistry::Unnoted unnoted;
    try {
      Diagnostics ignored;
      ImportOptions import;
      import.data_root = options_.data_root;
      Verify(Import(path, import, ignored));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void CheckOriginal() {
    ++result_.tests;
    const TestScript::Outcome outcome = script_.Run(model_);
    if (Stopped()) return;
    const auto fail = [&](const std::string& what, const TestScript::Outcome& how) {
      return Error("not-interesting", "the test script does not exit with 0 for {}: {}", what,
                   how.text)
          .At({model_.string(), ""})
          .Expected("a script that exits with 0 as long as its file shows the fault");
    };
    if (!outcome.passed)
      throw fail("the model", outcome)
          .Help("run it by hand: {} {}", options_.script.string(), model_.string());
    must_import_ = Imports(model_);
    if (must_import_ && !Stopped()) {
      std::vector<std::string> values;
      for (const GraphNode& node : best_->Graph(0).nodes)
        values.insert(values.end(), node.results.begin(), node.results.end());
      best_ = best_->Typed(values);
    }
    // What follows is written by mlc, like this copy.
    TestScript::Outcome copy;
    if (!IsInteresting(*best_, &copy) && !Stopped())
      throw fail("a copy of the model that mlc wrote", copy)
          .Help(
              "make the script independent of the name, the encoding and the comments of the "
              "file");
  }

  bool IsInteresting(const EditableModel& candidate, TestScript::Outcome* outcome = nullptr) {
    if (Stopped()) return false;
    if (options_.progress) options_.progress({step_, best_->operation_count(), result_.tests});
    const TemporaryFolder folder;
    const fs::path path = folder.path / ("model" + options_.output.extension().string());
    std::string hash;
    try {
      const InputRegistry::Unnoted unnoted;
      Diagnostics ignored;
      candidate.Write(path, false, ignored);
      hash = HashOf(path);
    } catch (const std::exception& error) {
      if (outcome) outcome->text = error.what();
      return false;
    }
    if (const auto known = tested_.find(hash); known != tested_.end()) return known->second;
    bool interesting = false;
    if (!must_import_ || Imports(path)) {
      ++result_.tests;
      const TestScript::Outcome found = script_.Run(path);
      if (Stopped() && !found.passed) return false;
      interesting = found.passed;
      if (outcome) *outcome = found;
    } else if (outcome) {
      outcome->text = "mlc does not import it";
    }
    tested_[hash] = interesting;
    return interesting;
  }

  // Applies edit(base, items) to the largest set of items for which the result is interesting.
  void Minimise(const std::string& step, size_t count,
                const std::function<Pointer(const EditableModel&, const Items&)>& edit) {
    step_ = step;
    const Pointer base = best_;
    RemovableItems(count, [&](const Items& items) {
      if (Stopped()) return false;
      Pointer candidate;
      try {
        candidate = edit(*base, items);
      } catch (const std::exception&) {
        return false;  // the edit is not possible: a type is unknown or cannot be inferred
      }
      if (!candidate || !IsInteresting(*candidate)) return false;
      best_ = candidate;
      changed_ = true;
      return true;
    });
  }

  void ReduceFunctions() {
    const size_t count = best_->functions().size();
    if (count < 2) return;
    Minimise("functions", count, [count](const EditableModel& base, const Items& items) {
      Items kept;
      for (size_t i = 0; i < count; ++i)
        if (!items.contains(i)) kept.insert(i);
      return kept.empty() ? nullptr : base.WithFunctions(kept);
    });
  }

  void ReduceOutputs(size_t function) {
    const ModelGraph graph = best_->Graph(function);
    if (graph.outputs.size() < 2) return;
    Minimise("outputs", graph.outputs.size(), [&](const EditableModel& base, const Items& items) {
      ModelPart part;
      part.inputs = graph.inputs;
      for (size_t i = 0; i < graph.outputs.size(); ++i)
        if (!items.contains(i)) part.outputs.push_back(graph.outputs[i]);
      return part.outputs.empty() ? nullptr : base.Part(function, part);
    });
  }

  void ReduceNodes(size_t function, bool bypass) {
    const ModelGraph graph = best_->Graph(function);
    Minimise("operations", graph.nodes.size(), [&](const EditableModel& base, const Items& items) {
      const std::optional<ModelPart> part = PartWithout(graph, items, bypass);
      return part ? base.Part(function, *part) : nullptr;
    });
  }

  void ReduceFunction(size_t function) {
    ReduceOutputs(function);
    ReduceNodes(function, false);
    ReduceNodes(function, true);
    ReduceOutputs(function);
    constexpr std::pair<Simplification, const char*> kSimplifications[] = {
        {Simplification::kUniform, "constants"}, {Simplification::kZero, "constants"},
        {Simplification::kOne, "constants"},     {Simplification::kAttributes, "attributes"},
        {Simplification::kSizes, "sizes"},       {Simplification::kInputSizes, "sizes"},
    };
    for (const auto& [how, step] : kSimplifications)
      Minimise(step, best_->PlacesToSimplify(function, how),
               [&, how = how](const EditableModel& base, const Items& items) {
                 return base.Simplified(function, how, items);
               });
  }

  const fs::path model_;
  const ReduceOptions& options_;
  const Clock::time_point begin_ = Clock::now();
  const TestScript script_;
  Pointer best_;
  ReduceResult result_;
  std::string step_ = "the model";
  bool must_import_ = true, changed_ = false;
  std::unordered_map<std::string, bool> tested_;  // by hash: whether it was interesting
};

}  // namespace

ReduceResult Reduce(const fs::path& model, const ReduceOptions& options, Diagnostics& diagnostics) {
  return Reducer(model, options, diagnostics).Run(diagnostics);
}

}  // namespace mlc::driver

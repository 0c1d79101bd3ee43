#include "lib/analysis/valid_sizes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/ir/builder.h"

namespace mlc::analysis {

namespace {

using Sizes = std::map<std::string, int64_t>;

constexpr int64_t kSmall =
    4096;  // maximum number of elements to evaluate, which suffices for shape arithmetic

// Infers the types of all operations in order, with numbers in place of the symbols.
class Trial {
 public:
  Trial(const Function& function, const Sizes& sizes) {
    for (const auto& [name, size] : sizes) sizes_.emplace(name, size);
    known_.reserve(function.body.operations().size());
    for (const auto& input : function.body.inputs) known_[input.get()] = {With(input->type), {}};
    Walk(function.body);
    for (size_t i = 0; i < function.body.outputs().size(); ++i)
      for (const Dim& dim : ArgOf(function.body.outputs()[i]).type.shape)
        if (dim == Dim(0))
          throw Error("empty-tensor", "output \"{}\" has no elements",
                      function.body.outputs()[i]->name);
  }

 private:
  // Returns a declared type with numbers in place of its symbols.
  Type With(Type type) const {
    for (Dim& dim : type.shape) dim = dim.Substitute(sizes_);
    type.length = type.length.Substitute(sizes_);
    for (Type& element : type.elements) element = With(std::move(element));
    return type;
  }

  // Returns type and constant of a value that is already defined.
  OpContext::Arg ArgOf(const Value* value) const {
    if (value->is_constant()) return {value->type, value->constant()};
    auto it = known_.find(value);
    MLC_CHECK(it != known_.end(), "{} is used before it is defined", value->name);
    return it->second;
  }

  // Returns whether all operands are known and small enough to evaluate.
  bool IsKnown(const Operation& op) const {
    auto is_small = [](const Tensor& value) { return value && value.size() <= kSmall; };
    for (const Operands& operands : op.args())
      for (const Operand& operand : operands) {
        auto it = known_.find(operand.value);
        if (!is_small(it == known_.end() ? operand.constant() : it->second.value)) return false;
      }
    return true;
  }

  void Walk(const Block& block) {
    for (Operation* op : block.operations()) {
      if (op->def->is_const()) continue;
      try {
        Infer(*op);
      } catch (Error& error) {
        if (error.id() == "needs-constant" || error.id() == "resource-limit") {
          Declare(*op);
          continue;
        }
        if (!error.has_location()) {
          if (op->location && !op->location->empty())
            error.At(*op->location);
          else
            error.At({"", fmt::format("operation {} \"{}\"", op->def->name, op->name)});
        }
        throw;
      }
    }
  }

  void Declare(const Operation& op) {
    for (const auto& result : op.results) known_[result.get()] = {With(result->type), {}};
  }

  void Infer(const Operation& op) {
    if (op.def->effect == Effect::kBranch) {
      Tensor pred = OpContext(*op.def, op.args(), known_).value("pred");
      if (!pred) {
        // The branch depends on data: one of them must be valid.
        try {
          Walk(*op.blocks[0]);
        } catch (const Error&) {
          Walk(*op.blocks[1]);
        }
        return Declare(op);
      }
      const Block& taken = *op.blocks[pred.Bool(0) ? 0 : 1];
      Walk(taken);
      for (size_t i = 0; i < op.results.size(); ++i)
        known_[op.results[i].get()] = ArgOf(taken.outputs()[i]);
      return;
    }
    if (!op.blocks.empty() || !op.def->infer) return Declare(op);
    InferContext context(*op.def, op.args(), known_);
    op.def->infer(context);
    if (context.results.size() != op.results.size()) return Declare(op);
    bool evaluates = op.def->pure && op.def->eval && IsKnown(op);
    for (size_t i = 0; i < op.results.size(); ++i) {
      OpContext::Arg& arg = known_[op.results[i].get()];
      arg = {std::move(context.results[i]), {}};
      Complete(arg.type, op.results[i]->type);
      evaluates = evaluates && arg.type.is_tensor() && IsStatic(arg.type.shape);
      if (context.dims[i]) arg.value = Numbers(arg.type, *context.dims[i]);
    }
    if (!evaluates) return;
    std::vector<Type> types;
    for (const auto& result : op.results) {
      types.push_back(known_[result.get()].type);
      if (ElementCount(StaticDims(types.back().shape)) > kSmall) return;
    }
    EvalContext evaluated(*op.def, op.args(), known_, std::move(types));
    op.def->eval(evaluated);
    for (size_t i = 0; i < op.results.size(); ++i)
      known_[op.results[i].get()].value = evaluated.results.at(i);
  }

  // Dimensions that type inference could not determine are as declared; element types are always as
  // declared.
  void Complete(Type& type, const Type& declared) const {
    if (type.kind != declared.kind || type.shape.size() != declared.shape.size()) {
      type = With(declared);
      return;
    }
    type.dtype = declared.dtype;
    for (size_t d = 0; d < type.shape.size(); ++d)
      if (InferContext::HasPlaceholder(type.shape[d]))
        type.shape[d] = declared.shape[d].Substitute(sizes_);
    if (InferContext::HasPlaceholder(type.length)) type.length = declared.length.Substitute(sizes_);
    type.elements.clear();
    for (const Type& element : declared.elements) type.elements.push_back(With(element));
  }

  // Returns the elements of an integer tensor if all are numbers.
  static Tensor Numbers(const Type& type, const std::vector<Dim>& elements) {
    if (!type.is_tensor() || !IsInteger(type.dtype) || !IsStatic(type.shape)) return {};
    std::vector<int64_t> numbers;
    for (const Dim& element : elements) {
      if (!element.is_constant()) return {};
      numbers.push_back(element.constant());
    }
    Dims dims = StaticDims(type.shape);
    if (ElementCount(dims) != static_cast<int64_t>(numbers.size())) return {};
    return Tensor::Vector<int64_t>(numbers).Cast(type.dtype).Reshaped(dims);
  }

  std::map<std::string, Dim> sizes_;
  OpContext::Values known_;
};

std::string Text(const Sizes& sizes) {
  std::vector<std::string> texts;
  for (const auto& [name, size] : sizes) texts.push_back(fmt::format("{} = {}", name, size));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Returns the smallest allowed size that is at least `size`, or the largest allowed size.
int64_t Allowed(const Symbol& symbol, int64_t size) {
  if (symbol.enumerated.empty()) return std::clamp(size, symbol.low, symbol.high);
  auto it = std::lower_bound(symbol.enumerated.begin(), symbol.enumerated.end(), size);
  return it == symbol.enumerated.end() ? symbol.enumerated.back() : *it;
}

class Search {
 public:
  explicit Search(const Function& function) : function_(function) {
    for (const auto& input : function.body.inputs)
      for (const Dim& dim : input->type.shape) {
        std::vector<std::string> names;
        dim.CollectSymbols(names);
        for (const std::string& name : names)
          if (auto it = function.symbols.find(name); it != function.symbols.end())
            low_[name] = it->second.low;
      }
    int64_t operations = 1;
    ForEachOperation(const_cast<Function&>(function), [&](Operation*) { ++operations; });
    tries_ = std::max<int64_t>(kLeastTries, kInferences / operations);
  }

  // Returns an empty result for inputs without symbols.
  Sizes Least() {
    if (low_.empty() || !Try(low_)) return low_;
    return Smallest().value_or(low_);
  }

  // `function` is the function that is searched.
  void Narrow(Function& function, Diagnostics& diagnostics) {
    if (low_.empty()) return;
    std::optional<Error> wrong = Try(low_);
    if (wrong) {
      std::optional<Sizes> smallest = Smallest();
      if (!smallest || tries_ <= 0 || HangTogether(*smallest)) {
        Unknown(*wrong, smallest, diagnostics);
        return;
      }
      Sizes found = std::move(*smallest);
      for (const auto& [name, size] : found) {
        if (size == low_[name] || !At(name).enumerated.empty())
          continue;  // CheckOthers reports the error
        diagnostics.Note(fmt::format("minimum size of {} raised to {}: {} is invalid: {}", name,
                                     size, Text(low_), wrong->text()));
        function.symbols.at(name).low = size;
      }
      low_ = std::move(found);
      function.SimplifySizes();
    }
    for (const auto& [name, size] : low_) CheckOthers(name, diagnostics);
  }

 private:
  static constexpr int64_t kInferences = 100'000, kLeastTries = 300;
  static constexpr int64_t kMost = 256;  // number of sizes that are tried one by one

  std::optional<Error> Try(const Sizes& sizes) {
    --tries_;
    return SizeError(function_, sizes);
  }
  const Symbol& At(const std::string& name) const { return function_.symbols.at(name); }

  Sizes With(const std::string& name, int64_t size) const {
    Sizes sizes = low_;
    sizes[name] = size;
    return sizes;
  }

  std::optional<Sizes> Smallest() {
    // Increase all sizes together, then decrease each.
    int64_t first = INT64_MAX;
    for (const auto& [name, low] : low_) first = std::min(first, low + 1);
    for (int64_t size = first;; size = size < kMost ? size + 1 : size * 2) {
      Sizes sizes;
      bool more = false;
      for (const auto& [name, low] : low_) {
        sizes[name] = Allowed(At(name), size);
        more = more || sizes[name] < At(name).high;
      }
      if (!Try(sizes)) return Lowered(std::move(sizes));
      if (!more || tries_ <= 0) break;
    }
    // Increase one size alone, if it must differ from the others.
    for (const auto& [name, low] : low_)
      for (int64_t size = Next(name, low); size > low && size <= kMost && tries_ > 0;
           size = Next(name, size)) {
        if (!Try(With(name, size))) return With(name, size);
        if (size == At(name).high) break;
      }
    return std::nullopt;
  }

  // Returns whether smaller sizes of a symbol are valid with other sizes of the remaining symbols,
  // as for a tensor that is reshaped to a fixed shape. No symbol then has a minimum of its own.
  bool HangTogether(const Sizes& found) {
    constexpr int64_t kMostSmaller = 16, kMostTried = 400;
    if (found.size() == 1) return false;
    for (const auto& [name, size] : found) {
      std::vector<Sizes> others = {found};
      for (const auto& [other, low] : low_) {
        if (other == name) continue;
        std::vector<Sizes> next;
        for (const Sizes& sizes : others)
          for (int64_t value : {low, low + 1, low + 2, low + 3, found.at(other), size, 2 * size}) {
            next.push_back(sizes);
            next.back()[other] = Allowed(At(other), value);
          }
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        if (std::ssize(next) > kMostTried) next.resize(kMostTried);
        others = std::move(next);
      }
      for (int64_t smaller = low_[name]; smaller < std::min(size, low_[name] + kMostSmaller);
           smaller = Next(name, smaller))
        for (Sizes sizes : others) {
          if (tries_ <= 0) return true;
          sizes[name] = smaller;
          if (!Try(sizes)) return true;
        }
    }
    return false;
  }

  // If there is one symbol, and no valid size, this is an error; several symbols may have valid
  // combinations.
  void Unknown(const Error& wrong, const std::optional<Sizes>& known, Diagnostics& diagnostics) {
    std::vector<std::string> options;
    for (const auto& [name, low] : low_)
      options.push_back(fmt::format("option 'dim' {}={}", name,
                                    known ? std::to_string(known->at(name)) : std::string("SIZE")));
    std::string what = known ? "some combinations of sizes of the dynamic dimensions are invalid"
                             : "no valid sizes of the dynamic dimensions were found";
    Error error("input-shape", "{}; with {}: {}", what, Text(low_), wrong.text());
    if (wrong.has_location()) error.At(wrong.location());
    error.Help("set static sizes: {}", fmt::join(options, " "));
    if (!known && low_.size() == 1) throw error;
    diagnostics.Warn(std::move(error));
  }

  // Returns the next allowed size, or `size` at the end.
  int64_t Next(const std::string& name, int64_t size) { return Allowed(At(name), size + 1); }

  Sizes Lowered(Sizes sizes) {
    for (const auto& [name, low] : low_)
      for (int64_t size = low, most = sizes[name]; size < most && tries_ > 0;
           size = Next(name, size)) {
        Sizes smaller = sizes;
        smaller[name] = size;
        if (Try(smaller)) continue;
        sizes = std::move(smaller);
        break;
      }
    return sizes;
  }

  // Returns sizes in which every symbol has the given size, or the nearest allowed one.
  Sizes Together(int64_t size) const {
    Sizes all;
    for (const auto& [name, low] : low_) all[name] = std::max(low, Allowed(At(name), size));
    return all;
  }

  // Tries the size for all symbols, since the result serves each of them, then for this symbol
  // alone.
  bool Computes(const std::string& name, int64_t size) {
    bool computes = false;
    if (size < low_.at(name)) {
      Sizes all = Together(size);
      all[name] = size;
      computes = !Try(all);
    } else {
      auto [known, first] = together_.try_emplace(size);
      if (first) known->second = !Try(Together(size));
      computes = known->second;
    }
    return computes || (low_.size() > 1 && !Try(With(name, size)));
  }

  void CheckOthers(const std::string& name, Diagnostics& diagnostics) {
    const Symbol& symbol = At(name);
    if (symbol.low == symbol.high) return;
    std::vector<int64_t> sizes;
    if (!symbol.enumerated.empty()) {
      for (int64_t size : symbol.enumerated)
        if (Computes(name, size)) sizes.push_back(size);
      if (sizes == symbol.enumerated) return;
      std::vector<int64_t> others;
      std::set_difference(symbol.enumerated.begin(), symbol.enumerated.end(), sizes.begin(),
                          sizes.end(), std::back_inserter(others));
      std::optional<Error> wrong = Try(With(name, others.front()));
      throw Error("input-shape", "{} = {} is invalid: {}", name, fmt::join(others, ", "),
                  wrong ? wrong->text() : "")
          .Help("option 'dim' {}={}", name, fmt::join(sizes, ","));
    }
    if (Computes(name, symbol.low + 1)) return;
    constexpr int64_t kLooked = 64;
    constexpr size_t kShown = 4;
    for (int64_t size = symbol.low; size <= std::min(symbol.high, symbol.low + kLooked * 4) &&
                                    sizes.size() < kShown && tries_ > 0;
         ++size)
      if (size == symbol.low || Computes(name, size)) sizes.push_back(size);
    diagnostics.Note(fmt::format(
        "only some sizes of {} are valid ({}, ...); option 'dim' {}={} allows only these", name,
        fmt::join(sizes, ", "), name, fmt::join(sizes, ",")));
  }

  const Function& function_;
  Sizes low_;
  std::map<int64_t, bool> together_;  // whether all symbols can have this size
  int64_t tries_;
};

}  // namespace

std::optional<Error> SizeError(const Function& function, const Sizes& sizes) {
  try {
    Trial trial(function, sizes);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

std::map<std::string, int64_t> SmallestSizes(const Function& function) {
  return Search(function).Least();
}

void NarrowOpenSizes(Function& function, Diagnostics& diagnostics) {
  Search(function).Narrow(function, diagnostics);
}

}  // namespace mlc::analysis

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/analysis/cost.h"
#include "lib/support/edit_distance.h"
#include "tools/driver/frontends.h"
#include "tools/driver/import.h"
#include "tools/driver/model_interface.h"
#include "tools/driver/supplied_tensors.h"

namespace mlc::driver {

namespace {

// Returns the intersection of both ranges, or nothing if it is empty.
std::optional<Symbol> Both(const Symbol& a, const Symbol& b) {
  Symbol both{std::max(a.low, b.low), std::min(a.high, b.high), {}};
  if (!a.enumerated.empty() || !b.enumerated.empty()) {
    auto takes = [](const Symbol& symbol, int64_t size) {
      return size >= symbol.low && size <= symbol.high &&
             (symbol.enumerated.empty() || std::ranges::count(symbol.enumerated, size) > 0);
    };
    for (int64_t size : a.enumerated.empty() ? b.enumerated : a.enumerated)
      if (takes(a, size) && takes(b, size)) both.enumerated.push_back(size);
    if (both.enumerated.empty()) return std::nullopt;
    both.low = both.enumerated.front();
    both.high = both.enumerated.back();
    if (both.enumerated.size() == 1) both.enumerated.clear();
  }
  return both.low <= both.high ? std::optional(both) : std::nullopt;
}

// Narrows a symbol of `chosen`. `function` has the original bounds, for errors.
void Narrow(const Function& function, const std::string& name, const Symbol& wanted,
            const std::string& option, Symbols& chosen) {
  std::optional<Symbol> both = Both(chosen.at(name), wanted);
  if (!both)
    throw Error("bad-input", "{}: an input of the package does not accept this size", option)
        .Expected(SizesText(function, Dim::Symbol(name)));
  chosen[name] = std::move(*both);
}

void ChooseShape(const Function& function, size_t i, Dims dims, const std::string& option,
                 Symbols& chosen) {
  const Shape& shape = InputValues(function)[i]->type.shape;
  // Images of a source may be channels-last, those of a package are always channels-first.
  if (function.inputs[i].feature != Port::Feature::kMultiArray && dims.size() == 4 &&
      shape[1] == Dim(dims[3]) && !(shape[1] == Dim(dims[1])))
    dims = {dims[0], dims[3], dims[1], dims[2]};
  auto fail = [&](const std::string& text) {
    return Error("bad-input", "{}: {}", option, text).Expected(ToString(shape));
  };
  if (dims.size() != shape.size())
    throw fail(fmt::format("{} dimensions, but the input of the package has {}", dims.size(),
                           shape.size()));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (auto open = shape[d].symbol_and_offset()) {
      int64_t size = dims[d] - open->second;
      Narrow(function, open->first, {size, size, {}}, option, chosen);
    } else if (shape[d].is_constant() && shape[d] != Dim(dims[d])) {
      throw fail(fmt::format("dimension {} of the package's input is not {}", d, dims[d]));
    }
  }
}

// If whole shapes are enumerated, the first one that the chosen sizes allow determines all sizes,
// and becomes the only enumerated shape.
void ChooseListed(Function& function, Symbols& chosen) {
  std::vector<const Value*> inputs = InputValues(function);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Dims>& shapes = function.inputs[i].enumerated_shapes;
    auto narrowed = [&](const Dims& dims) -> std::optional<Symbols> {
      try {
        Symbols copy = chosen;
        ChooseShape(function, i, dims, "", copy);
        return copy;
      } catch (const Error&) {
        return std::nullopt;
      }
    };
    if (shapes.empty() || shapes[0].size() != inputs[i]->type.shape.size()) continue;
    std::optional<Symbols> found;
    size_t s = 0;
    while (s < shapes.size() && !(found = narrowed(shapes[s]))) ++s;
    if (!found)
      throw Error("bad-input",
                  "input \"{}\" of the package: no enumerated shape matches --shape and --dim",
                  function.inputs[i].name)
          .Expected(ShapesText(function.inputs[i]));
    shapes = {Dims(shapes[s])};
    chosen = std::move(*found);
  }
}

std::string Quoted(const std::vector<std::string>& names) {
  return names.empty() ? "no dimension is dynamic"
                       : fmt::format("\"{}\"", fmt::join(names, "\", \""));
}

// Calls take(function, sizes) for each function, which returns whether the option applies to it; it
// must apply to at least one.
template <class Take>
void InSome(Program& program, bool may_lack, const Error& unknown, Take&& take) {
  bool taken = false;
  std::optional<Error> refused;
  for (const auto& function : program.functions) {
    try {
      Symbols chosen = function->symbols;
      if (!take(*function, chosen)) continue;
      function->symbols = std::move(chosen);
      taken = true;
    } catch (const Error& error) {
      refused = error;
    }
  }
  if (!taken && refused) throw *refused;
  if (!taken && !may_lack) throw unknown;
}

void ChooseSizes(Program& program, const ImportOptions& options, bool may_lack) {
  std::vector<std::string> symbols, inputs;
  for (const auto& function : program.functions) {
    for (const std::string& name : analysis::InputSymbols(*function))
      if (std::ranges::find(symbols, name) == symbols.end()) symbols.push_back(name);
    for (const Port& port : function->inputs) inputs.push_back(verify::UserName(port));
  }
  for (const auto& [name, wanted] : options.dims) {
    const std::string option = "--dim " + name, legal = LegalName(name);
    InSome(program, may_lack,
           Error("bad-name", "{}: no input has a dynamic dimension with this name{}", option,
                 DidYouMean(symbols, name))
               .Expected(Quoted(symbols)),
           [&](const Function& function, Symbols& chosen) {
             for (const std::string& open : analysis::InputSymbols(function)) {
               if (open != name && open != legal) continue;
               Narrow(function, open, wanted, option, chosen);
               return true;
             }
             return false;
           });
  }
  for (const auto& [name, dims] : options.shapes) {
    const std::string option = fmt::format("--shape {}={}", name, fmt::join(dims, ","));
    InSome(program, may_lack,
           Error("bad-name", "--shape {}: the model has no input with this name{}", name,
                 DidYouMean(inputs, name))
               .Expected(Quoted(inputs)),
           [&](const Function& function, Symbols& chosen) {
             for (size_t i = 0; i < function.inputs.size(); ++i) {
               const Port& port = function.inputs[i];
               if (port.source_name != name && port.name != name) continue;
               ChooseShape(function, i, dims, option, chosen);
               return true;
             }
             return false;
           });
  }
  if (options.dims.empty() && options.shapes.empty()) return;
  for (const auto& function : program.functions) ChooseListed(*function, function->symbols);
}

}  // namespace

Program ImportToRun(const std::filesystem::path& path, const ImportOptions& options, bool may_lack,
                    Diagnostics& diagnostics) {
  if (FrontendOf(path).Takes("--dim")) return Import(path, options, diagnostics);
  ImportOptions others = options;
  others.dims.clear();
  others.shapes.clear();
  Program program = Import(path, others, diagnostics);
  ChooseSizes(program, options, may_lack);
  return program;
}

}  // namespace mlc::driver

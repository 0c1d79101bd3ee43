// lib/analysis/placement.h - which operations of a function a compute unit can execute, why it
// cannot execute the others, and what transferring values to and from another unit costs.
//
// The answer comes from one table of rules (placement_rules.h). It is a prediction: Core ML decides
// on the device, and its decisions are not documented. Constants and the constexpr operations that
// decode weights are not placed, because Core ML evaluates them when it loads the model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/analysis/cost.h"
#include "lib/analysis/rule.h"

namespace mlc::analysis {

enum class Unit : uint8_t { kCpu = 1, kGpu = 2, kNeuralEngine = 4 };
std::string_view Name(Unit unit);       // "CPU", "GPU", "Neural Engine"
std::string_view ShortName(Unit unit);  // "cpu", "gpu", "ane", as on the command line
std::optional<Unit> UnitNamed(std::string_view short_name);

// A chip with the generation of its Neural Engine, which is the number of the A-series chip that
// introduced it: 14 for A14 and M1.
struct Chip {
  std::string_view name;
  int generation;
};
std::span<const Chip> Chips();
// The chip of this name, in any case; null if there is none.
const Chip* ChipNamed(std::string_view name);
// The chip that is assumed if none is given: A14, whose Neural Engine the first Macs with one have.
const Chip& DefaultChip();

struct PlacementRule;

// A rule that applies to an operation, or to the function as a whole (null).
struct PlacementFinding {
  const PlacementRule* rule;
  const Operation* op;
  std::string text;  // what was found: "operand x is fp32"
};

struct PlacedOperation {
  const Operation* op;
  double work;             // estimated multiply-adds, at least one per element (cost.h)
  bool eligible;           // no rule says that the unit cannot run it
  size_t first, findings;  // its findings are Placement::findings[first, first + findings)
};

// Operations that a unit executes without another unit in between (segments.h).
struct PlacedSegment {
  bool eligible;
  int64_t operations;
  double work;
  const Operation *first, *last;
  double bytes_in, bytes_out;  // values that it exchanges with other segments
};

struct Placement {
  const Function* function;
  SymbolSizes sizes;
  std::vector<PlacedOperation> operations;  // in program order, nested ones before their parent
  std::vector<PlacementFinding> findings;   // those of operations, then those of the function
  std::vector<PlacedSegment> segments;      // in execution order
  int64_t eligible_operations = 0, eligible_segments = 0;
  double work = 0, eligible_work = 0;
  int64_t transfers = 0;  // values that are made in one segment and used in another
  double transfer_bytes = 0;

  // The shares are 1 for a function without operations.
  double operation_share() const;
  double work_share() const;
};

// The name of the first result; an operation without results, which writes a state, has that of the
// state.
std::string NameOf(const Operation& op);
// Examines a function at these sizes of its symbols.
Placement PlacementOf(const Function& function, Unit unit, const Chip& chip,
                      const SymbolSizes& sizes);
// The sizes at which a function is examined: each combination that its inputs enumerate, or the
// lower bounds of its symbols.
std::vector<SymbolSizes> SizesToExamine(const Function& function);

// Returns the share of the work that could run on the unit if `rule` did not exist.
double WorkShareWithout(const Placement& placement, const PlacementRule& rule);

// Findings about the package as a whole.
std::vector<PlacementFinding> ProgramFindings(const Program& program, Unit unit, const Chip& chip);

}  // namespace mlc::analysis

#include "lib/analysis/placement.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

#include "lib/analysis/placement_rules.h"
#include "lib/analysis/segments.h"
#include "lib/ir/builder.h"

namespace mlc::analysis {

namespace {

// Generations by die name (H11 for A12, ...), as compilers for the Neural Engine list them:
// h13g for M1, h14g for M2, h15g for M3, h16g for M4 and h16p for A17 Pro, h17g for M5 and h17p for
// A18, h18p for A19.
constexpr std::array kChips = {
    Chip{"A12", 12},    Chip{"A13", 13}, Chip{"A14", 14}, Chip{"A15", 15}, Chip{"A16", 16},
    Chip{"A17Pro", 17}, Chip{"A18", 18}, Chip{"A19", 19}, Chip{"M1", 14},  Chip{"M2", 15},
    Chip{"M3", 16},     Chip{"M4", 17},  Chip{"M5", 18}};

// Returns whether the unit executes the operation, rather than Core ML when it loads the model.
bool IsExecuted(const Operation& op) { return !op.def->is_const() && !op.def->is_constexpr(); }

double BytesOf(const Type& type, const SymbolSizes& sizes) {
  if (!type.is_tensor() || type.dtype == DType::kString) return 0;
  double elements = 1;
  for (const Dim& dim : Sized(type, sizes).shape) elements *= static_cast<double>(dim.constant());
  return elements * Bits(type.dtype) / 8;
}

// Describes the segments and what they exchange.
void AddSegments(const Function& function, Placement& placement) {
  std::unordered_map<const Operation*, const PlacedOperation*> placed;
  for (const PlacedOperation& operation : placement.operations) placed[operation.op] = &operation;
  const std::vector<Segment> segments = SegmentsOf(function.body, [&](const Operation& op) {
    const auto at = placed.find(&op);
    return at == placed.end()     ? Side::kEither
           : at->second->eligible ? Side::kDevice
                                  : Side::kElsewhere;
  });
  std::unordered_map<const Operation*, size_t> segment_of;
  // Includes nested operations.
  std::function<void(const Operation&, PlacedSegment&)> add = [&](const Operation& op,
                                                                  PlacedSegment& to) {
    if (const auto at = placed.find(&op); at != placed.end()) {
      ++to.operations;
      to.work += at->second->work;
    }
    segment_of[&op] = placement.segments.size();
    for (const auto& nested : op.blocks)
      for (const Operation* inner : nested->operations()) add(*inner, to);
  };
  for (const Segment& segment : segments) {
    PlacedSegment to{segment.side == Side::kDevice, 0, 0, nullptr, nullptr, 0, 0};
    for (const Operation* op : segment.operations) {
      add(*op, to);
      if (!placed.contains(op)) continue;
      if (!to.first) to.first = op;
      to.last = op;
    }
    placement.eligible_segments += to.eligible;
    placement.segments.push_back(to);
  }
  // A value crosses once for each segment that reads it; only those between units count.
  for (const PlacedOperation& operation : placement.operations) {
    const Operation* op = operation.op;
    const auto from = segment_of.find(op);
    if (from == segment_of.end()) continue;
    for (const auto& result : op->results) {
      std::vector<size_t> readers;
      for (const Operation* user : result->users)
        if (const auto to = segment_of.find(user);
            to != segment_of.end() &&
            placement.segments[to->second].eligible != placement.segments[from->second].eligible &&
            std::find(readers.begin(), readers.end(), to->second) == readers.end())
          readers.push_back(to->second);
      const double bytes = BytesOf(result->type, placement.sizes);
      for (size_t reader : readers) {
        ++placement.transfers;
        placement.transfer_bytes += bytes;
        placement.segments[from->second].bytes_out += bytes;
        placement.segments[reader].bytes_in += bytes;
      }
    }
  }
}

}  // namespace

std::string NameOf(const Operation& op) {
  if (!op.results.empty()) return op.result()->name;
  for (const Operands& operands : op.args())
    for (const Operand& operand : operands)
      if (operand.value) return operand.value->name;
  return op.name;
}

std::string_view Name(Unit unit) {
  return unit == Unit::kCpu ? "CPU" : unit == Unit::kGpu ? "GPU" : "Neural Engine";
}

std::string_view ShortName(Unit unit) {
  return unit == Unit::kCpu ? "cpu" : unit == Unit::kGpu ? "gpu" : "ane";
}

std::optional<Unit> UnitNamed(std::string_view short_name) {
  for (Unit unit : {Unit::kCpu, Unit::kGpu, Unit::kNeuralEngine})
    if (ShortName(unit) == short_name) return unit;
  return std::nullopt;
}

std::string_view Name(Severity severity) {
  constexpr std::array<std::string_view, 5> kNames = {"note", "slow", "warning", "inaccurate",
                                                      "cannot run"};
  return kNames[static_cast<size_t>(severity)];
}

std::string_view Name(Standing standing) {
  constexpr std::array<std::string_view, 4> kNames = {"Apple", "source code", "measured", "claim"};
  return kNames[static_cast<size_t>(standing)];
}

std::span<const Chip> Chips() { return kChips; }

const Chip* ChipNamed(std::string_view name) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const Chip& chip : kChips)
    if (std::equal(chip.name.begin(), chip.name.end(), name.begin(), name.end(), same))
      return &chip;
  return nullptr;
}

const Chip& DefaultChip() { return *ChipNamed("A14"); }

double Placement::operation_share() const {
  return operations.empty()
             ? 1
             : static_cast<double>(eligible_operations) / static_cast<double>(operations.size());
}

double Placement::work_share() const { return work > 0 ? eligible_work / work : 1; }

Placement PlacementOf(const Function& function, Unit unit, const Chip& chip,
                      const SymbolSizes& sizes) {
  Placement placement{.function = &function, .sizes = sizes};
  const std::vector<std::string> open = InputSymbols(function);
  std::vector<const PlacementRule*> rules;
  for (const PlacementRule& rule : PlacementRules())
    if (rule.AppliesTo(unit, chip)) rules.push_back(&rule);
  ForEachExecution(function, sizes, [&](const Operation& op, double times) {
    if (!IsExecuted(op)) return;
    PlacedOperation operation{&op, times * CostOf(op, sizes).multiply_adds, true,
                              placement.findings.size(), 0};
    const OperationAt at{op, sizes, function.symbols, open, chip};
    for (const PlacementRule* rule : rules) {
      if (!rule->operation) continue;
      std::string text = rule->operation(at);
      if (text.empty()) continue;
      operation.eligible = operation.eligible && rule->severity != Severity::kCannotRun;
      placement.findings.push_back({rule, &op, std::move(text)});
    }
    operation.findings = placement.findings.size() - operation.first;
    placement.work += operation.work;
    placement.eligible_work += operation.eligible ? operation.work : 0;
    placement.eligible_operations += operation.eligible;
    placement.operations.push_back(operation);
  });
  AddSegments(function, placement);
  for (const PlacementRule* rule : rules)
    if (rule->function)
      if (std::string text = rule->function(placement, chip); !text.empty())
        placement.findings.push_back({rule, nullptr, std::move(text)});
  return placement;
}

std::vector<SymbolSizes> SizesToExamine(const Function& function) {
  constexpr size_t kMost = 64;
  std::vector<SymbolSizes> all(1);
  for (const auto& [name, symbol] : function.symbols) {
    std::vector<int64_t> sizes = symbol.enumerated;
    if (sizes.empty() || all.size() * sizes.size() > kMost) sizes = {symbol.low};
    std::vector<SymbolSizes> next;
    for (const SymbolSizes& before : all)
      for (int64_t size : sizes) {
        next.push_back(before);
        next.back()[name] = size;
      }
    all = std::move(next);
  }
  return all;
}

double WorkShareWithout(const Placement& placement, const PlacementRule& rule) {
  double eligible = placement.eligible_work;
  for (const PlacedOperation& operation : placement.operations) {
    if (operation.eligible) continue;
    bool other = false;
    for (size_t i = 0; i < operation.findings; ++i) {
      const PlacementRule& found = *placement.findings[operation.first + i].rule;
      other = other || (&found != &rule && found.severity == Severity::kCannotRun);
    }
    if (!other) eligible += operation.work;
  }
  return placement.work > 0 ? eligible / placement.work : 1;
}

std::vector<PlacementFinding> ProgramFindings(const Program& program, Unit unit, const Chip& chip) {
  std::vector<PlacementFinding> findings;
  for (const PlacementRule& rule : PlacementRules())
    if (rule.program && rule.AppliesTo(unit, chip))
      if (std::string text = rule.program(program, chip); !text.empty())
        findings.push_back({&rule, nullptr, std::move(text)});
  return findings;
}

}  // namespace mlc::analysis

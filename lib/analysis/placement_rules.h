// lib/analysis/placement_rules.h - the table of rules on what the compute units of Apple silicon
// can execute.
//
// Apple documents little of this, so each rule names its source and how good the source is. Where
// sources conflict, the rule names both, and a comment in the table gives the reason for the choice.
// A rule is frozen with its source: what a device does is a reason to change it, the coverage of a
// model is not. placement_rules.md lists the table for readers; PlacementRulesPage() generates it.
#pragma once

#include <span>
#include <string>

#include "lib/analysis/placement.h"

namespace mlc::analysis {

// An operation at given sizes.
struct OperationAt {
  const Operation& op;
  const SymbolSizes& sizes;
  const Symbols& symbols;                // of the function
  const std::vector<std::string>& open;  // symbols of the function's inputs
  const Chip& chip;
};

struct PlacementRule : Rule {
  uint8_t units;       // set of Unit
  int oldest, newest;  // generations that it applies to (Chip); 0: no bound
  // Exactly one of these is set. They return what was found, or "" if the rule does not apply.
  std::string (*operation)(const OperationAt&) = nullptr;
  std::string (*function)(const Placement&, const Chip&) = nullptr;
  std::string (*program)(const Program&, const Chip&) = nullptr;
  bool weights = false;  // it is about the form in which weights or activations are stored

  bool AppliesTo(Unit unit, const Chip& chip) const;
};

std::span<const PlacementRule> PlacementRules();
// "it is conv", the text of findings that depend on the operator only.
std::string ItIs(const Operation& op);
// The table in Markdown.
std::string PlacementRulesPage();

}  // namespace mlc::analysis

#include "lib/runtime/runtime.h"

#include <array>
#include <utility>

namespace mlc::runtime {
namespace {

constexpr std::array<std::pair<Units, std::string_view>, 5> kUnits{
    {{Units::kAll, "all"},
     {Units::kCpu, "cpu"},
     {Units::kGpu, "gpu"},
     {Units::kAne, "ane"},
     {Units::kReference, "reference"}}};
constexpr std::array<std::string_view, 5> kDevices{"unknown", "cpu", "gpu", "ane", "reference"};
constexpr std::array<std::string_view, kFailures> kFailureNames{
    "compile", "schema", "exception", "timeout", "memory", "parity", "fallback"};

struct FailureId {
  std::string_view id;
  Failure failure;
};
constexpr std::array<FailureId, 7> kFailureIds{{{"bad-input", Failure::kSchema},
                                                {"bad-name", Failure::kSchema},
                                                {"schema-mismatch", Failure::kSchema},
                                                {"timeout", Failure::kTimeout},
                                                {"workers-hang", Failure::kTimeout},
                                                {"resource-limit", Failure::kMemory},
                                                {"check-failed", Failure::kParity}}};

}  // namespace

std::string_view Name(Units units) {
  for (const auto& [unit, name] : kUnits)
    if (unit == units) return name;
  return "";
}

std::optional<Units> ParseUnits(std::string_view text) {
  for (const auto& [unit, name] : kUnits)
    if (name == text) return unit;
  return std::nullopt;
}

std::string_view Name(Device device) { return kDevices[static_cast<size_t>(device)]; }

bool Allows(Units units, Device device) {
  switch (units) {
    case Units::kAll:
      return device != Device::kReference && device != Device::kUnknown;
    case Units::kCpu:
      return device == Device::kCpu;
    case Units::kGpu:
      return device == Device::kGpu;
    case Units::kAne:
      return device == Device::kAne;
    case Units::kReference:
      return device == Device::kReference;
  }
  return false;
}

std::string_view Name(Failure failure) { return kFailureNames[static_cast<size_t>(failure)]; }

Failure FailureOf(std::string_view error_id) {
  for (const auto& [id, failure] : kFailureIds)
    if (id == error_id) return failure;
  return Failure::kException;
}

}  // namespace mlc::runtime

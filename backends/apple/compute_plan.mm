#include "backends/apple/compute_plan.h"

#include <algorithm>
#include <cmath>

#include "backends/apple/completion.h"
#include "backends/apple/objc_ptr.h"
#include "backends/apple/system_info.h"
#include "lib/ops/row.h"

namespace mlc::apple {
namespace {

// "ios16.conv" is conv in the opset ios16.
std::string WithoutOpset(const std::string& name) { return name.substr(name.rfind('.') + 1); }

API_AVAILABLE(macos(14.4))
runtime::OperationPlacement PlacementOf(MLComputePlan* plan,
                                        MLModelStructureProgramOperation* operation) {
  runtime::OperationPlacement placement;
  placement.op = WithoutOpset(ToText([operation operatorName]));
  // Core ML does not name operations; those that write a state have no results either.
  MLModelStructureProgramNamedValueType* first = [[operation outputs] firstObject];
  placement.name = first ? ToText([first name]) : placement.op;
  // Nil for operations that Core ML evaluates itself or does not report.
  MLComputePlanDeviceUsage* usage = [plan computeDeviceUsageForMLProgramOperation:operation];
  if (id<MLComputeDeviceProtocol> preferred = [usage preferredComputeDevice])
    placement.preferred = ToDevice(preferred);
  for (id<MLComputeDeviceProtocol> device in [usage supportedComputeDevices])
    placement.supported.push_back(ToDevice(device));
  std::sort(placement.supported.begin(), placement.supported.end());
  // The weight may be NaN (executorch also guards against that).
  if (MLComputePlanCost* cost = [plan estimatedCostOfMLProgramOperation:operation])
    if (!std::isnan([cost weight])) placement.cost = [cost weight];
  return placement;
}

// Constants, including encoded ones, and folded operations have no device and no cost.
bool IsNotComputed(const runtime::OperationPlacement& placement) {
  const OpDef* def = Ops().Find(placement.op);
  return (def && (def->is_const() || def->is_constexpr())) ||
         (placement.preferred == runtime::Device::kUnknown && placement.cost == 0.0);
}

API_AVAILABLE(macos(14.4))
void AddBlock(MLComputePlan* plan, MLModelStructureProgramBlock* block,
              std::vector<runtime::OperationPlacement>& placements) {
  for (MLModelStructureProgramOperation* operation in [block operations]) {
    runtime::OperationPlacement placement = PlacementOf(plan, operation);
    if (IsNotComputed(placement)) continue;
    placements.push_back(std::move(placement));
    for (MLModelStructureProgramBlock* nested in [operation blocks])
      AddBlock(plan, nested, placements);
  }
}

// The requested function; else "main", the usual name of the default function; else the only
// function.
API_AVAILABLE(macos(14.4))
MLModelStructureProgramFunction* FunctionOf(MLModelStructureProgram* program,
                                            MLModelConfiguration* configuration) {
  NSDictionary<NSString*, MLModelStructureProgramFunction*>* functions = [program functions];
  NSString* name = nil;
  if (@available(macOS 15.0, *)) name = [configuration functionName];
  if (name) return [functions objectForKey:name];
  MLModelStructureProgramFunction* main = [functions objectForKey:@"main"];
  return main || [functions count] != 1 ? main : [[functions allValues] firstObject];
}

}  // namespace

std::vector<runtime::OperationPlacement> PlacementsOf(const std::filesystem::path& bundle,
                                                      MLModelConfiguration* configuration,
                                                      std::string& reason) {
  auto awaited = std::make_shared<Completion<ObjcPtr<MLComputePlan*>>>();
  auto words = std::make_shared<std::string>();  // written before awaited is finished
  NSURL* url = [NSURL fileURLWithPath:[NSString stringWithUTF8String:bundle.c_str()]];
  [MLComputePlan loadContentsOfURL:url
                     configuration:configuration
                 completionHandler:^(MLComputePlan* plan, NSError* error) {
                   awaited->Finish("planning", [&] {
                     if (!plan) *words = Words(error);
                     return ObjcPtr<MLComputePlan*>(plan);
                   });
                 }];
  ObjcPtr<MLComputePlan*> plan = awaited->Wait();
  std::vector<runtime::OperationPlacement> placements;
  if (!plan) {
    reason = "Core ML cannot create a compute plan: " + *words;
    return placements;
  }
  MLModelStructureProgram* program = [[plan.get() modelStructure] program];
  MLModelStructureProgramFunction* function = FunctionOf(program, configuration);
  if (!function) {
    reason =
        program ? "Core ML's compute plan lacks the function" : "the model is not an ML Program";
    return placements;
  }
  AddBlock(plan.get(), [function block], placements);
  if (placements.empty()) reason = "Core ML's compute plan has no operations";
  return placements;
}

}  // namespace mlc::apple

// Versions, devices and the compute plan.
#include <sys/sysctl.h>
#include <cmath>

#include <cstdio>
#include <cstring>

#include "test/backends/apple/stub/objects.h"

namespace fs = std::filesystem;
using namespace mlc::stub;

namespace {

std::string System() { return Text("macos", "26.0"); }

// 15.1 as 1501.
int Number(const char* version) {
  int major = 0, minor = 0;
  std::sscanf(version, "%d.%d", &major, &minor);
  return 100 * major + minor;
}

}  // namespace

BOOL MLStubAvailable(const char* version) {
  if (std::strncmp(version, "macOS ", 6) != 0) std::abort();
  return Number(version + 6) <= Number(System().c_str());
}

int sysctlbyname(const char* name, void* old_value, size_t* old_size, void*, size_t) {
  std::string text;
  if (!std::strcmp(name, "kern.osproductversion"))
    text = System();
  else if (!std::strcmp(name, "kern.osversion"))
    text = "00A000";
  else if (!std::strcmp(name, "machdep.cpu.brand_string"))
    text = "Stub M0";
  else
    return -1;
  if (old_value) std::memcpy(old_value, text.c_str(), std::min(*old_size, text.size() + 1));
  *old_size = text.size() + 1;
  return 0;
}

@implementation MLCPUComputeDevice
@end
@implementation MLGPUComputeDevice
@end
@implementation MLNeuralEngineComputeDevice
@end

namespace {

template <class... Class>
NSArray* Devices(Class... present) {
  NSMutableArray* devices = [NSMutableArray array];
  for (id type : {(id)present...})
    if (type) [devices addObject:[[[type alloc] init] autorelease]];
  return devices;
}

NSArray* DevicesOf(mlc::runtime::Units units) {
  const bool gpu =
      !Is("no-gpu") && (units == mlc::runtime::Units::kAll || units == mlc::runtime::Units::kGpu);
  const bool ane =
      !Is("no-ane") && (units == mlc::runtime::Units::kAll || units == mlc::runtime::Units::kAne);
  return Devices([MLCPUComputeDevice class], gpu ? [MLGPUComputeDevice class] : nil,
                 ane ? [MLNeuralEngineComputeDevice class] : nil);
}

}  // namespace

namespace mlc::stub {
NSArray<id<MLComputeDeviceProtocol>>* AllDevices() { return DevicesOf(runtime::Units::kAll); }
}  // namespace mlc::stub

@implementation MLComputePlanDeviceUsage
- (NSArray<id<MLComputeDeviceProtocol>>*)supportedComputeDevices {
  return _supportedComputeDevices;
}
- (id<MLComputeDeviceProtocol>)preferredComputeDevice {
  return _preferredComputeDevice;
}
- (void)dealloc {
  [_supportedComputeDevices release];
  [super dealloc];
}
@end
@implementation MLComputePlanCost
- (double)weight {
  return _weight;
}
@end
@implementation MLModelStructureProgramNamedValueType
- (NSString*)name {
  return _name;
}
- (void)dealloc {
  [_name release];
  [super dealloc];
}
@end
@implementation MLModelStructureProgramOperation
- (NSString*)operatorName {
  return _operatorName;
}
- (NSArray*)outputs {
  return _outputs;
}
- (NSArray*)blocks {
  return _blocks;
}
- (void)dealloc {
  [_operatorName release];
  [_outputs release];
  [_blocks release];
  [super dealloc];
}
@end
@implementation MLModelStructureProgramBlock
- (NSArray*)operations {
  return _operations;
}
- (void)dealloc {
  [_operations release];
  [super dealloc];
}
@end
@implementation MLModelStructureProgramFunction
- (MLModelStructureProgramBlock*)block {
  return _block;
}
- (void)dealloc {
  [_block release];
  [super dealloc];
}
@end
@implementation MLModelStructureProgram
- (NSDictionary*)functions {
  return _functions;
}
- (void)dealloc {
  [_functions release];
  [super dealloc];
}
@end
@implementation MLModelStructure
- (MLModelStructureProgram*)program {
  return _program;
}
- (void)dealloc {
  [_program release];
  [super dealloc];
}
@end

namespace {

MLModelStructureProgramBlock* BlockOf(const mlc::Block& block);

MLModelStructureProgramOperation* OperationOf(const mlc::Operation& op) {
  MLModelStructureProgramOperation* made =
      [[[MLModelStructureProgramOperation alloc] init] autorelease];
  made->_operatorName =
      [ToString(op.is("const") ? "const" : "ios16." + std::string(op.def->name)) retain];
  NSMutableArray* outputs = [NSMutableArray array];
  for (const auto& result : op.results) {
    MLModelStructureProgramNamedValueType* output =
        [[[MLModelStructureProgramNamedValueType alloc] init] autorelease];
    output->_name = [ToString(result->name) retain];
    [outputs addObject:output];
  }
  made->_outputs = [outputs retain];
  NSMutableArray* blocks = [NSMutableArray array];
  for (const auto& block : op.blocks) [blocks addObject:BlockOf(*block)];
  made->_blocks = [blocks retain];
  return made;
}

MLModelStructureProgramBlock* BlockOf(const mlc::Block& block) {
  NSMutableArray* operations = [NSMutableArray array];
  for (const auto& op : block.operations()) [operations addObject:OperationOf(*op)];
  MLModelStructureProgramBlock* made = [[[MLModelStructureProgramBlock alloc] init] autorelease];
  made->_operations = [operations retain];
  return made;
}

MLModelStructure* StructureOf(const mlc::Program& program) {
  NSMutableDictionary* functions = [NSMutableDictionary dictionary];
  for (const auto& function : program.functions) {
    MLModelStructureProgramFunction* made =
        [[[MLModelStructureProgramFunction alloc] init] autorelease];
    made->_block = [BlockOf(function->body) retain];
    [functions setObject:made forKey:ToString(function->name)];
  }
  MLModelStructureProgram* made = [[[MLModelStructureProgram alloc] init] autorelease];
  made->_functions = [functions retain];
  MLModelStructure* structure = [[[MLModelStructure alloc] init] autorelease];
  structure->_program = [made retain];
  return structure;
}

int CostingOperations(const mlc::Block& block) {
  int count = 0;
  for (const auto& op : block.operations()) {
    count += !op->is("const");
    for (const auto& nested : op->blocks) count += CostingOperations(*nested);
  }
  return count;
}

mlc::runtime::Units UnitsOf(MLModelConfiguration* configuration) {
  switch ([configuration computeUnits]) {
    case MLComputeUnitsCPUOnly:
      return mlc::runtime::Units::kCpu;
    case MLComputeUnitsCPUAndGPU:
      return mlc::runtime::Units::kGpu;
    case MLComputeUnitsCPUAndNeuralEngine:
      return mlc::runtime::Units::kAne;
    default:
      return mlc::runtime::Units::kAll;
  }
}

}  // namespace

@implementation MLComputePlan
+ (void)loadContentsOfURL:(NSURL*)url
            configuration:(MLModelConfiguration*)configuration
        completionHandler:(void (^)(MLComputePlan* computePlan, NSError* error))handler {
  if (!MLStubAvailable("macOS 14.4"))
    [NSException raise:NSInvalidArgumentException format:@"unrecognized selector"];
  auto copied = (void (^)(MLComputePlan*, NSError*))Block_copy(handler);
  Answer([copied, bundle = fs::path([[url path] UTF8String]), units = UnitsOf(configuration)] {
    std::string words = "no plan";
    std::shared_ptr<MLStubModel> model;
    if (!Is("no-plan")) model = Open(bundle, "", words);
    MLComputePlan* plan = nil;
    if (model) {
      plan = [[[MLComputePlan alloc] init] autorelease];
      plan->_modelStructure = [StructureOf(*model->program) retain];
      plan->_devices = [DevicesOf(units) retain];
      plan->_share = 1.0 / CostingOperations(model->program->main()->body);
    }
    copied(plan, plan ? nil : MakeError(words));
    Block_release(copied);
  });
}
- (MLModelStructure*)modelStructure {
  return _modelStructure;
}
// Constants have no device usage. The last device, which is the fastest, is preferred.
- (MLComputePlanDeviceUsage*)computeDeviceUsageForMLProgramOperation:
    (MLModelStructureProgramOperation*)operation {
  NSString* name = [operation operatorName];
  if (Is("nil-devices") || [name isEqual:@"const"] ||
      [name isEqual:ToString("ios16." + Text("folded-op", ""))])
    return nil;
  MLComputePlanDeviceUsage* usage = [[[MLComputePlanDeviceUsage alloc] init] autorelease];
  const bool cpu = [name isEqual:ToString("ios16." + Text("cpu-op", ""))];
  usage->_supportedComputeDevices =
      [(cpu ? [NSArray arrayWithObject:[_devices objectAtIndex:0]] : _devices) retain];
  usage->_preferredComputeDevice = [usage->_supportedComputeDevices lastObject];
  return usage;
}
- (MLComputePlanCost*)estimatedCostOfMLProgramOperation:
    (MLModelStructureProgramOperation*)operation {
  if (Is("nil-cost") || [[operation operatorName] isEqual:@"const"]) return nil;
  MLComputePlanCost* cost = [[[MLComputePlanCost alloc] init] autorelease];
  cost->_weight = Is("nan-cost") ? std::nan("") : _share;
  if ([[operation operatorName] isEqual:ToString("ios16." + Text("folded-op", ""))])
    cost->_weight = 0;
  return cost;
}
- (void)dealloc {
  [_modelStructure release];
  [_devices release];
  [super dealloc];
}
@end

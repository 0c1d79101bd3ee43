#include "backends/apple/system_info.h"

#include <sys/sysctl.h>

#include <algorithm>

#include "backends/apple/coreml_errors.h"

namespace mlc::apple {
namespace {

// Returns "" if the system has no such value.
std::string Ask(const char* name) {
  size_t size = 0;
  if (sysctlbyname(name, nullptr, &size, nullptr, 0) != 0 || size == 0) return "";
  std::string text(size, '\0');
  if (sysctlbyname(name, text.data(), &size, nullptr, 0) != 0) return "";
  text.resize(size);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string SystemName() { return "macOS " + Ask("kern.osproductversion"); }

// Empty if the system does not report its devices.
std::vector<runtime::Device> Devices() {
  std::vector<runtime::Device> devices;
  if (@available(macOS 14.0, *)) {
    for (id<MLComputeDeviceProtocol> device in [MLModel availableComputeDevices])
      devices.push_back(ToDevice(device));
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  }
  return devices;
}

void Lacks(std::vector<runtime::Capabilities::Missing>& missing, std::string feature,
           std::string_view version) {
  missing.push_back({std::move(feature), fmt::format("requires macOS {}; this machine runs {}",
                                                     version, SystemName())});
}

}  // namespace

runtime::Device ToDevice(id<MLComputeDeviceProtocol> device) {
  if ([device isKindOfClass:[MLCPUComputeDevice class]]) return runtime::Device::kCpu;
  if ([device isKindOfClass:[MLGPUComputeDevice class]]) return runtime::Device::kGpu;
  if ([device isKindOfClass:[MLNeuralEngineComputeDevice class]]) return runtime::Device::kAne;
  return runtime::Device::kUnknown;
}

Error NeedsSystem(std::string_view feature, std::string_view version) {
  return Error("needs-system", "{}: macOS {} is required; this machine runs {}", feature, version,
               SystemName());
}

void CheckUnits(runtime::Units units) {
  if (units != runtime::Units::kGpu && units != runtime::Units::kAne) return;
  const runtime::Device wanted =
      units == runtime::Units::kGpu ? runtime::Device::kGpu : runtime::Device::kAne;
  std::vector<runtime::Device> devices = Devices();
  if (devices.empty() || std::find(devices.begin(), devices.end(), wanted) != devices.end()) return;
  throw Error("needs-system", "units {}: this machine has no {}", Name(units),
              units == runtime::Units::kGpu ? "GPU that Core ML can use" : "Neural Engine")
      .Help("use option 'units' all or option 'units' cpu");
}

runtime::Capabilities SystemCapabilities() {
  runtime::Capabilities found;
  found.runtime = "Core ML";
  NSBundle* framework = [NSBundle bundleForClass:[MLModel class]];
  id version = [[framework infoDictionary] objectForKey:@"CFBundleVersion"];
  if ([version isKindOfClass:[NSString class]]) found.runtime_version = ToText(version);
  found.os = SystemName();
  found.os_build = Ask("kern.osversion");
  found.chip = Ask("machdep.cpu.brand_string");
  found.devices = Devices();
  if (@available(macOS 14.0, *)) {
  } else {
    Lacks(found.missing, "list of devices", "14");
  }
  if (@available(macOS 14.4, *)) {
  } else {
    Lacks(found.missing, "compute plan", "14.4");
    Lacks(found.missing, "hint about reshapes", "14.4");
  }
  if (@available(macOS 15.0, *)) {
  } else {
    for (const char* feature : {"states", "choice of a function", "hint about specialization"})
      Lacks(found.missing, feature, "15");
  }
  if (!found.devices.empty())
    for (runtime::Device device : {runtime::Device::kGpu, runtime::Device::kAne})
      if (std::find(found.devices.begin(), found.devices.end(), device) == found.devices.end())
        found.missing.push_back(
            {fmt::format("units {}", Name(device)), "this machine has no such device"});
  return found;
}

}  // namespace mlc::apple

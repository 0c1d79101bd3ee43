// backends/apple/description.h - what a loaded model takes and gives, as Core ML describes it.
#pragma once

#import <CoreML/CoreML.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lib/runtime/runtime.h"

namespace mlc::apple {

// A Feature, and what an interface of runtimes has no need to know.
struct Described {
  Feature feature;
  MLFeatureType type = MLFeatureTypeInvalid;
  bool optional = false;
  bool stated = false;  // dims are: of outputs they need not be
  bool bgr = false;     // the order of an image's channels
  OSType format = 0;    // of its pixels
};

// In the order of the bundle's metadata.json, where that lists them; then by name.
struct Description {
  std::vector<Described> inputs, outputs;
  Schema schema;
};

// `bundle` is where the model was loaded from. Error "schema-mismatch" for kinds of features that this code does not
// know.
std::shared_ptr<const Description> Describe(MLModelDescription* description,
                                            const std::filesystem::path& bundle,
                                            const std::string& function);
// "fp32 [1, 3, ?, ?]"
std::string TypeText(DType dtype, const Dims& dims);
// Whether they are sizes that `dims`, where -1 is open, allow.
bool Fits(const Dims& dims, const Dims& sizes);

}  // namespace mlc::apple

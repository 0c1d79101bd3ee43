// backends/apple/description.h - the inputs, outputs and states of a loaded model, as described by
// Core ML.
#pragma once

#import <CoreML/CoreML.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lib/runtime/runtime.h"

namespace mlc::apple {

// A Feature with the details that the runtime interface does not expose.
struct Described {
  runtime::Feature feature;
  MLFeatureType type = MLFeatureTypeInvalid;
  bool optional = false;
  bool stated = false;  // whether the dims are declared; those of outputs may not be
  bool bgr = false;     // channel order of an image
  OSType format = 0;    // pixel format of an image
};

// Features are in the order of the bundle's metadata.json if it lists them, then by name.
struct Description {
  std::vector<Described> inputs, outputs;
  runtime::Schema schema;
};

// `bundle` is the path that the model was loaded from. Error "schema-mismatch" for unknown kinds of
// features.
std::shared_ptr<const Description> Describe(MLModelDescription* description,
                                            const std::filesystem::path& bundle,
                                            const std::string& function);
// "fp32 [1, 3, ?, ?]"
std::string TypeText(DType dtype, const Dims& dims);
// Returns whether `sizes` match `dims`, in which -1 is an open dimension.
bool Fits(const Dims& dims, const Dims& sizes);

}  // namespace mlc::apple

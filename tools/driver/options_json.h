// tools/driver/options_json.h - options as a JSON object, as in the C interface.
//
//   {"precision": "fp32", "dim": {"batch": "1..8"}, "shape": {"x": [1, 3, 224, 224]},
//    "no-manifest": true, "fp32-ops": ["softmax"]}
//
// A field is the name of an option without its dashes. An option NAME=VALUE is an object, a switch
// is a boolean, a list is an array, and every value may also be text as on the command line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "tools/driver/options.h"

namespace mlc::driver {

// Sets the fields of the options in `json`; "" stands for an empty object. Error "usage" for
// text that is not a JSON object, an unknown field, and a value that the option does not accept.
void FillFromJson(const std::vector<Option>& options, std::string_view json);

// Describes the options: [{"name", "type", "value", "choices", "default", "required", "doc"}]. The
// type is "boolean", "number", "string", "array" (the option can be repeated) or "object"
// (NAME=VALUE); `value` is the placeholder of the help, `default` is stated where it is a fixed one.
nlohmann::ordered_json OptionsJson(const std::vector<Option>& options);

}  // namespace mlc::driver

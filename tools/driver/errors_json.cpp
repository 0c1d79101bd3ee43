#include <nlohmann/json.hpp>

#include "tools/driver/json_results.h"

namespace mlc::driver {

nlohmann::ordered_json ErrorJson(const Error& error) {
  return {{"id", error.id()},
          {"text", error.text()},
          {"location", error.location().ToString()},
          {"notes", error.notes()}};
}

}  // namespace mlc::driver

// tools/driver/json_results.h - the results of the driver as JSON: what --json prints, and what the
// C interface returns. Texts spell options as on the command line, or as the library does ("option
// 'dim'"); the caller replaces them (errors.h).
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lib/runtime/telemetry.h"
#include "tools/driver/compile.h"
#include "tools/driver/compression_sweep.h"
#include "tools/driver/diff.h"
#include "tools/driver/doctor.h"
#include "tools/driver/explain.h"
#include "tools/driver/inspect.h"
#include "tools/driver/operators.h"
#include "tools/driver/system_info.h"
#include "tools/driver/verify.h"

namespace mlc::driver {

// {id, text, location, notes}
nlohmann::ordered_json ErrorJson(const Error& error);
// {inputs, outputs, states}, with the symbols of open sizes and the labels of a classifier.
nlohmann::ordered_json InterfaceJson(const Function& function);
// The interface of the default function and of all functions: {..., functions, default_function}.
nlohmann::ordered_json ProgramJson(const Program& program);

nlohmann::ordered_json CompileJson(const CompileResult& result, const Diagnostics& diagnostics);
nlohmann::ordered_json CompressionSweepJson(const std::filesystem::path& model,
                                            const CompressionSweepResult& result);
// Figures that depend on the machine and on the run, in seconds and bytes.
nlohmann::ordered_json StatsJson(const CompileResult& result);
// `weights`: lists the constants.
nlohmann::ordered_json InspectJson(const InspectResult& result, bool weights);
nlohmann::ordered_json OperatorsJson(const ModelOperators& model);
nlohmann::ordered_json VerifyJson(const VerifyResult& result, const VerifyOptions& options);
nlohmann::ordered_json ExplainJson(const std::filesystem::path& model,
                                   const Explanation& explanation, const ExplainOptions& options);
nlohmann::ordered_json RuleJson(const analysis::Rule& rule);
nlohmann::ordered_json FindingsJson(const std::filesystem::path& model,
                                    const std::vector<Finding>& findings);
nlohmann::ordered_json VersionJson();  // of mlc and of its libraries
nlohmann::ordered_json SystemJson(const SystemReport& report);
nlohmann::ordered_json DiffJson(const DiffResult& result);
nlohmann::ordered_json TelemetryJson(const runtime::Snapshot& telemetry);
// The text of a JSON object: which inputs were generated and how.
std::string GeneratedInputsJson(const Function& function,
                                const std::map<std::string, analysis::InputRange>& made,
                                const analysis::GeneratedInputOptions& options, int samples);

}  // namespace mlc::driver

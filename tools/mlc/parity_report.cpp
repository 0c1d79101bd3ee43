#include "tools/mlc/parity_report.h"

#include <nlohmann/json.hpp>

#include "lib/support/json_text.h"
#include "tools/driver/errors.h"
#include "tools/driver/reports.h"
#include "tools/mlc/terminal.h"

namespace fs = std::filesystem;

namespace mlc::driver {

using Json = nlohmann::ordered_json;

std::string ParityJson(const verify::ParityResult& result) {
  return JsonText(Json{{"ok", Judge(result.outputs) == verify::Verdict::kPassed},
                       {"verdict", VerdictText(result.outputs)},
                       {"figure", verify::kErrorFigure},
                       {"package_hash", result.package_hash},
                       {"units", result.units},
                       {"machine", result.machine},
                       {"mlc", result.version},
                       {"predict_ms", result.milliseconds},
                       {"compared_again", result.compared_again},
                       {"outputs", ParseJson(verify::ReportJson(result.outputs))}});
}

int ShowParity(const verify::ParityResult& result, const std::string& bundle,
               const Session& session, const std::vector<fs::path>& reports,
               const fs::path& written) {
  bool ok = Judge(result.outputs) == verify::Verdict::kPassed;
  if (session.json)
    PrintDocument(ParseJson(ParityJson(result)));
  else
    PrintColored(
        stdout,
        fmt::format(
            "on {} by mlc {}, units {}, {:.2f} ms{}\nerror: {}\n{}{}{}\n", result.machine,
            result.version, result.units, result.milliseconds,
            result.compared_again ? ", compared again here" : "", verify::kErrorFigure,
            WithFlags(verify::ReportText(result.outputs)),
            written.empty()
                ? ""
                : fmt::format(
                      "written to {}; `mlc verify --result` checks it where the bundle was made\n",
                      written.string()),
            VerdictText(result.outputs)));
  if (!reports.empty())
    WriteReports(ParityReport(written.empty() ? "verify" : "run", {{bundle, result}}), reports);
  return ok ? 0 : ExitCode("check-failed");
}

}  // namespace mlc::driver

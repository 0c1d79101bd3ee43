#include "lib/report/render.h"
#include "lib/support/atomic_install.h"
#include "lib/support/error.h"

namespace mlc::report {

namespace {

struct Form {
  std::string_view ending;
  std::string (*render)(const Document& document);
};
constexpr Form kForms[] = {
    {".html", Page}, {".md", Markdown}, {".xml", JUnit}, {".json", Json}, {".txt", TerminalText}};

const Form& FormOf(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  for (const Form& form : kForms)
    if (form.ending == ending) return form;
  throw Error("usage", "option 'report': \"{}\" does not name the form of the report",
              file.string())
      .Expected("a file that ends in .html, .md (Markdown), .xml (JUnit), .json or .txt");
}

}  // namespace

void CheckForm(const std::filesystem::path& file, bool checks) {
  if (FormOf(file).render == JUnit && !checks)
    throw Error("usage",
                "option 'report': \"{}\": nothing is checked that a test report could list",
                file.string())
        .Expected("a file that ends in .html, .md, .json or .txt");
}

void Write(const Document& document, const std::filesystem::path& file) {
  for (const Section& section : document.sections)
    for (const Content& content : section.blocks)
      if (const auto* table = std::get_if<Table>(&content))
        for (const std::vector<Cell>& row : table->rows)
          MLC_CHECK(row.size() == table->columns.size(), "\"{}\" has a row of {} cells, not {}",
                    section.title, row.size(), table->columns.size());
  WriteFile(file, FormOf(file).render(document));
}

}  // namespace mlc::report

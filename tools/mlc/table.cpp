#include "tools/mlc/table.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "lib/support/error.h"

namespace mlc::driver {

void Print(const Table& table, bool markdown) {
  if (markdown) {
    fmt::print("| {} |\n|", fmt::join(table.header, " | "));
    for (size_t i = 0; i < table.header.size(); ++i) fmt::print("---|");
    fmt::print("\n");
    for (const auto& row : table.rows) {
      fmt::print("|");
      for (std::string cell : row) {
        for (size_t i = 0; (i = cell.find('|', i)) != cell.npos; i += 2) cell.insert(i, 1, '\\');
        fmt::print(" {} |", cell);
      }
      fmt::print("\n");
    }
    return;
  }
  std::vector<size_t> widths(table.header.size());
  for (size_t i = 0; i < widths.size(); ++i) {
    widths[i] = table.header[i].size();
    for (const auto& row : table.rows) widths[i] = std::max(widths[i], row[i].size());
  }
  auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      fmt::print("{}",
                 i + 1 == cells.size() ? cells[i] : fmt::format("{:<{}}  ", cells[i], widths[i]));
    fmt::print("\n");
  };
  line(table.header);
  for (const auto& row : table.rows) line(row);
}

}  // namespace mlc::driver

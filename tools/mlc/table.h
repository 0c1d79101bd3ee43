// tools/mlc/table.h - tables for the terminal.
#pragma once

#include <string>
#include <vector>

namespace mlc::driver {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};
// Prints to stdout, aligned in columns or as Markdown.
void Print(const Table& table, bool markdown);

}  // namespace mlc::driver

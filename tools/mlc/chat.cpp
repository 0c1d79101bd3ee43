#include "tools/mlc/chat.h"

#include "lib/support/interrupt.h"
#include "tools/driver/conversation.h"
#include "tools/mlc/line_reader.h"

namespace fs = std::filesystem;

namespace mlc::driver {

namespace {

constexpr std::string_view kHelp =
    "/reset         forget the conversation\n"
    "/system TEXT   forget the conversation and set the system message; without TEXT, remove it\n"
    "/help          print this list\n"
    "/exit          leave, like Ctrl-D\n"
    "Ctrl-C ends an answer. A backslash at the end of a line continues the message in the next "
    "line.\n"
    "A message that begins with a slash is sent with a space before it.\n";

// Without the control characters that a terminal would obey.
std::string Harmless(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    if (control)
      out += "\uFFFD";
    else
      out += c;
  }
  // The controls of ISO 8859-1, some of which begin sequences, too.
  for (size_t at = 0; (at = out.find('\xC2', at)) != out.npos; ++at)
    if (at + 1 < out.size() && static_cast<unsigned char>(out[at + 1]) < 0xa0)
      out.replace(at, 2, "\uFFFD");
  return out;
}

class Chat {
 public:
  Chat(Conversation& conversation, bool terminal)
      : conversation_(conversation), terminal_(terminal) {}

  // Obeys a command or answers a message. Returns false if it ends the conversation.
  bool Take(const std::string& line) {
    const size_t begin = line.find_first_not_of(" \t\n");
    if (begin == line.npos) return true;
    if (line[0] == '/') return Command(line);
    Say(line.substr(begin));
    return true;
  }
  int exit_code() const { return exit_code_; }

 private:
  bool Command(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space);
    const size_t first = line.find_first_not_of(' ', space);
    const std::string rest = first == line.npos ? "" : line.substr(first);
    if (name != "/system" && !rest.empty())
      return Complain(Error("usage", "{} takes no text", name));
    if (name == "/exit" || name == "/quit" || name == "/bye") return false;
    if (name == "/reset") {
      conversation_.Reset();
      Tell("The conversation is forgotten.");
    } else if (name == "/system") {
      conversation_.SetSystem(rest.empty() ? std::nullopt : std::optional(rest));
      Tell(rest.empty() ? "The system message is removed, and the conversation forgotten."
                        : "The system message is set, and the conversation forgotten.");
    } else if (name == "/help") {
      fmt::print(stderr, "{}", kHelp);
    } else {
      return Complain(Error("usage", "unknown command \"{}\"", Harmless(name))
                          .Help("/help lists the commands"));
    }
    return true;
  }

  void Say(const std::string& message) {
    try {
      const GenerateResult result = conversation_.Say(message);
      std::fputs(terminal_ ? "\n\n" : "\n", stdout);
      if (result.why == "context")
        Tell("The context is full: the answer ends here. /reset begins a new conversation.");
    } catch (const Error& error) {
      std::fputs("\n", stdout);
      Complain(error);
    }
    std::fflush(stdout);
  }

  bool Complain(const Error& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", error.what());
    if (exit_code_ == 0) exit_code_ = ExitCode(error.id());
    return true;
  }
  void Tell(std::string_view text) const {
    if (terminal_) fmt::print(stderr, "{}\n", text);
  }

  Conversation& conversation_;
  bool terminal_;
  int exit_code_ = 0;
};

}  // namespace

int RunChat(const fs::path& model, const BenchmarkOptions& run, const TextArguments& text,
            Session& session) {
  GenerateOptions options = text.generate;
  options.picture = run.picture;
  options.fit = run.fit;
  options.sampling.seed = run.make_up.seed;
  options.show = [](std::string_view piece) { ShowPiece(Harmless(piece)); };
  // Interrupts are caught while an answer is made: the first one ends it.
  std::optional<FirstInterrupt> interrupt;
  options.interrupted = [&] { return interrupt->came(); };
  Conversation conversation(model, run, options, session.diagnostics);
  LineReader reader;
  Chat chat(conversation, reader.terminal());
  if (reader.terminal())
    fmt::print(stderr, "{}: /help lists the commands, Ctrl-D leaves.\n",
               model.filename().empty() ? model.string() : model.filename().string());
  while (const std::optional<LineReader::Line> line = reader.Read()) {
    if (line->interrupted) {
      if (line->text.empty()) fmt::print(stderr, "Ctrl-D or /exit leaves.\n");
      continue;
    }
    interrupt.emplace();
    const bool more = chat.Take(line->text);
    const bool ended = interrupt->came() && !reader.terminal();
    interrupt.reset();
    if (ended) DieOfInterrupt();
    if (!more) break;
  }
  return reader.terminal() ? 0 : chat.exit_code();
}

}  // namespace mlc::driver

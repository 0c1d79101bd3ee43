"""Tests `mlc run --chat` without a prompt: a conversation through a pipe and on a pseudo-terminal, and the state kept between turns."""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from driver import CORPUS, MLC, expect, run, run_tests  # noqa: E402
from language_models import refused  # noqa: E402
from speaking_models import CONTROL, Chain, Speaker, ids_of  # noqa: E402

FURTHER = {"<|im_start|>": CONTROL, "<|im_end|>": CONTROL}
CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
# Earlier answers are rendered unlike they were given, as templates do that leave out the thoughts.
SHORTENED = CHATML.replace("+ m.content +", "+ (m.content[:2] if m.role == 'assistant' else m.content) +")


def harmless(text):
    """Replaces control characters, which a terminal would obey."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", "\ufffd", text)


def piped(model, lines, *options, code=0):
    done = subprocess.run([str(MLC), "run", str(model), "--chat", *map(str, options)], input="".join(line + "\n" for line in lines).encode(),
                          capture_output=True, timeout=120)
    assert done.returncode == code, (done.returncode, done.stderr.decode())
    return done.stdout.decode(), done.stderr.decode()


def expected_answers(model, template, lines, system=None, *options):
    """The answers of `run --prompt`, which processes each conversation as a whole."""
    messages, answers = [("system", system)] * (system is not None), []
    for line in lines:
        messages.append(("user", line))
        shown = [(role, text[:2] if template is SHORTENED and role == "assistant" else text) for role, text in messages]
        prompt = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in shown) + "<|im_start|>assistant\n"
        answer = expect(run("run", model, f"--prompt={prompt}", *options, "--json"), 0).answer
        messages.append(("assistant", answer["text"]))
        answers.append(answer["text"])
    return answers


LINES = ["Once upon", "a time", "there was", "Once upon"]


def test_turns_continue_the_state(folder):
    """The answers are those to the whole conversation, whether the state was kept, rewound or filled anew."""
    for index, (template, system) in enumerate(((CHATML, None), (CHATML, "Be brief."), (SHORTENED, None))):
        model = Speaker(FURTHER, chat_template=template, context=400).gguf(folder / f"m{index}.gguf")
        told = () if system is None else ("--system", system)
        wanted = expected_answers(model, template, LINES, system, "--generate", 12)
        assert len(set(wanted)) > 1, wanted
        out, error = piped(model, LINES, "--generate", 12, *told)
        assert out == "".join(harmless(answer) + "\n" for answer in wanted), (template, out, wanted)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", out) and error == "", (out, error)
    expect(run("compile", model, "-o", folder / "m.mlpackage"), 0)
    wanted = expected_answers(folder / "m.mlpackage", SHORTENED, LINES, None, "--generate", 12)
    out, _ = piped(folder / "m.mlpackage", LINES, "--generate", 12)
    assert out == "".join(harmless(answer) + "\n" for answer in wanted), (out, wanted)


def test_recurrent_states_are_filled_anew(folder):
    """Such a state cannot go back to what an earlier answer, rendered shorter, has in common with the conversation."""
    template = "{% for m in messages %}{{ m.content[:1] if m.role == 'assistant' else m.content }}|{% endfor %}"
    tokenizer = Speaker(chat_template=template).gguf(folder / "tokenizer.gguf")
    options = ("--tokenizer", tokenizer, "--generate", 4)
    for name in ("mamba", "lfm2", "qwen35"):
        model = CORPUS / "gguf" / f"{name}.f32.gguf"
        if not model.exists():
            print(f"# {name}: skipped, needs the corpus")
            continue
        prompt, wanted = "", []
        for line in ("ab", "c", "d"):
            prompt += line + "|"
            wanted.append(expect(run("run", model, f"--prompt={prompt}", *options, "--json"), 0).answer["text"])
            prompt += wanted[-1][:1] + "|"
        out, _ = piped(model, ["ab", "c", "d"], *options)
        assert out == "".join(harmless(answer) + "\n" for answer in wanted), (name, out, wanted)


def test_commands_through_a_pipe(folder):
    model = Speaker(FURTHER, chat_template=CHATML, context=400).gguf(folder / "m.gguf")
    first, = expected_answers(model, CHATML, ["Hi"], None, "--generate", 8)
    told, = expected_answers(model, CHATML, ["Hi"], "Be brief.", "--generate", 8)
    out, error = piped(model, ["Hi", "/reset", "", "Hi", "/system Be brief.", "Hi", "/system", "Hi", "/exit", "Hi"], "--generate", 8)
    assert out == "".join(harmless(each) + "\n" for each in (first, first, told, first)) and error == "", (out, error)
    out, error = piped(model, ["/nothing", "Hi", "/reset now"], "--generate", 8, code=2)
    assert out == harmless(first) + "\n" and 'unknown command "/nothing"' in error and "/help" in error and "/reset takes no text" in error, error
    out, error = piped(model, ["/help"])
    assert out == "" and "/system TEXT" in error, error
    # A line that continues in the next one, and the end of the input.
    both, = expected_answers(model, CHATML, ["a\nb"], None, "--generate", 8)
    assert piped(model, ["a\\", "b"], "--generate", 8)[0] == harmless(both) + "\n"
    # Control characters of the model do not reach a terminal.
    loud = Chain(ids_of("\nA\x1b[2J\x07\x9b") + [2], further=FURTHER, chat_template=CHATML.replace("assistant\n", "assistant\n")).gguf(folder / "loud.gguf")
    out, _ = piped(loud, ["x"])
    assert "\x1b" not in out and "\x07" not in out and "[2J" in out, out


def test_what_is_refused(folder):
    model = Speaker(FURTHER, chat_template=CHATML, context=64).gguf(folder / "m.gguf")
    expect(run("run", model, "--chat", "--json"), 2, "--json requires --prompt")
    refused(run("run", model, "--chat", "--perplexity", model), "usage", "--chat requires --prompt")
    refused(run("run", model, "--chat", "--iterations", 3), "usage", "remove --iterations", "--chat replaces inputs")
    refused(run("run", model, "--chat", "--chat-variables", "[1]"), "usage", "not a JSON object", "enable_thinking")
    refused(run("run", model, "--chat", "--chat-variables", "{"), "usage", "--chat-variables")
    refused(run("run", Speaker().gguf(folder / "silent.gguf"), "--chat"), "usage", "no chat template", "with --chat-template")
    # A turn that fails is no part of the conversation, and the next one is answered.
    out, error = piped(model, ["x" * 80, "Hi"], "--generate", 4, code=2)
    answer, = expected_answers(model, CHATML, ["Hi"], None, "--generate", 4)
    assert out.strip("\n") == harmless(answer).strip("\n") and "the model accepts at most 64" in error, (out, error)
    picky = Speaker(FURTHER, chat_template="{% if messages|length > 1 %}{{ raise_exception('one message only') }}{% endif %}" + CHATML).gguf(folder / "p.gguf")
    out, error = piped(picky, ["Hi", "Ho", "Hey"], "--generate", 4, code=1)
    assert error.count("one message only") == 2 and "error[chat-template]" in error, error


class Terminal:
    """`mlc run --chat` on a pseudo-terminal."""

    def __init__(self, *arguments):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ |= {"TERM": "xterm", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent"}
            os.execv(MLC, [str(MLC), "run", *map(str, arguments)])
        self.shown = ""

    def until(self, pattern, seconds=60):
        """Reads until the pattern is shown, and returns what was shown up to it."""
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.shown, re.S)):
            left = end - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.shown[-500:]!r}"
            if select.select([self.terminal], [], [], left)[0]:
                try:
                    data = os.read(self.terminal, 4096)
                except OSError:  # Linux's end of a pseudo-terminal
                    data = b""
                assert data, f"ended without {pattern!r}: {self.shown[-500:]!r}"
                self.shown += data.decode(errors="replace")
        before, self.shown = self.shown[:match.end()], self.shown[match.end():]
        return before

    def send(self, text):
        os.write(self.terminal, text.encode())

    def code(self, seconds=60):
        """Reads to the end and returns the exit code."""
        try:
            while select.select([self.terminal], [], [], seconds)[0] and os.read(self.terminal, 4096):
                pass
        except OSError:
            pass
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])


def test_conversation_on_a_terminal(folder):
    # Answers "Yes." to everything: the generation prompt ends with a newline.
    model = Chain(ids_of("\nYes.") + [2], further=FURTHER, chat_template=CHATML, context=2048).gguf(folder / "m.gguf")
    terminal = Terminal(model, "--chat")
    assert "/help" in terminal.until("Ctrl-D leaves.*> ")
    terminal.send("Hi thære\r")
    assert "Hi thære" in terminal.until(r"\r\nYes\.\r\n\r\n.*> ")
    # Editing: the word before the cursor is deleted, and the line completed.
    terminal.send("one two\x17three\r")
    assert terminal.until(r"\r\nYes\.\r\n\r\n.*> ")
    # History: the line before, edited.
    terminal.send("\x1b[A!\r")
    assert "one three!" in terminal.until(r"\r\nYes\.\r\n\r\n.*> ")
    for command, answer in (("/help", "/system TEXT"), ("/reset", "forgotten"), ("/system Be brief.", "message is set"), ("/system", "removed"),
                            ("/what", "unknown command")):
        terminal.send(command + "\r")
        terminal.until(re.escape(answer) + ".*> ")
    # Ctrl-C drops a line, and says how to leave where there is none.
    terminal.send("not this\x03")
    terminal.until(r"\^C\r\n.*> ")
    terminal.send("\x03")
    terminal.until("Ctrl-D or /exit leaves.*> ")
    terminal.send("Hi\r")
    terminal.until(r"\r\nYes\.\r\n\r\n.*> ")
    terminal.send("\x04")
    assert terminal.code() == 0
    terminal = Terminal(model, "--chat")
    terminal.until("> ")
    terminal.send("/exit\r")
    assert terminal.code() == 0


def test_ctrl_c_ends_the_answer(folder):
    ring = Chain(ids_of("\nhelo, wrd!\n"), further=FURTHER, chat_template=CHATML, context=1 << 16).gguf(folder / "m.gguf")
    terminal = Terminal(ring, "--chat", "--context", 1 << 16)
    terminal.until("> ")
    for _ in range(2):
        terminal.send("Hi\r")
        terminal.until(r"helo, wrd!\r\nhelo, wrd!")
        terminal.send("\x03")
        terminal.until(r"\r\n\r\n.*> ")
    terminal.send("\x04")
    assert terminal.code() == 0


def test_an_interrupt_ends_a_pipe(folder):
    ring = Chain(ids_of("\nhelo, wrd!\n"), further=FURTHER, chat_template=CHATML, context=1 << 16).gguf(folder / "m.gguf")
    with subprocess.Popen([str(MLC), "run", str(ring), "--chat", "--context", str(1 << 16)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        process.stdin.write(b"Hi\nHi\n")
        process.stdin.flush()
        first = b""
        while len(first) < 20:
            first += os.read(process.stdout.fileno(), 20)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT, process.returncode


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "chat"))

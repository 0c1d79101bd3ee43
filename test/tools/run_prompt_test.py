"""Tests `mlc run --prompt`: every format of a model gives the same text, stop conditions, streaming, errors."""
import os
import pathlib
import signal
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import driver  # noqa: E402
import llama_cpp  # noqa: E402
from driver import CORPUS, MLC, expect, run, run_tests  # noqa: E402
from language_models import Llama, logits, refused  # noqa: E402
from speaking_models import BOS, BYTES, CONTROL, EOS, Chain, Speaker, ids_of, prompt_of  # noqa: E402

REFERENCE = ("--units", "reference")


def generated(model, prompt, *options, count=None):
    limit = () if count is None else ("--generate", count)
    return expect(run("run", model, "--prompt", prompt, *limit, *options, "--json", timeout=120), 0).answer


def test_every_form_says_the_same(folder):
    """GGUF, folder, package and bundle give the same text, which is that of greedy decoding from the logits of all tokens at
    once and step by step."""
    speaker = Speaker()
    model = speaker.gguf(folder / "m.gguf")
    answer = generated(model, "Once upon", count=64)
    tokens = answer["tokens"]
    assert answer["prompt_tokens"] == prompt_of("Once upon") and len(tokens) == 64 and len(set(tokens)) > 5, answer
    expect(run("compile", model, "-o", folder / "m.mlpackage"), 0)
    expect(run("precompile", folder / "m.mlpackage", "-o", folder / "m.mlmodelc"), 0)
    hugging_face = speaker.hugging_face(folder / "hf")
    for other in (folder / "m.mlpackage", folder / "m.mlmodelc", hugging_face):
        found = generated(other, "Once upon", *REFERENCE, count=64)
        assert found["tokens"] == tokens and found["text"] == answer["text"], (other, found)
    whole = prompt_of("Once upon") + tokens
    for step in ((), ("--step",)):
        rows = logits(model, whole[:-1], folder / f"logits{len(step)}", *step)
        assert list(rows.argmax(1)[len(whole) - 65:]) == tokens, step
    assert answer["mode"] == "exact" and answer["finish"] == "length" and answer["why"] == "--generate"
    assert answer["prefill_tokens_per_second"] > 0 and answer["decode_tokens_per_second"] > 0


def test_llama_cpp_says_the_same(folder):
    models = sorted((CORPUS / "gguf").glob("*.f32.gguf"))
    models = [m for m in models if "bert" not in m.name]
    if not models or llama_cpp.ask({"chat": []}) is None:
        print("# greedy generation against llama.cpp: skipped, needs ../shared/corpus and LLAMA_DIR")
        return
    close = []
    for model in models:
        answer = generated(model, "abcdefgh", count=64)
        count = len(answer["tokens"])
        theirs = llama_cpp.ask({"model": str(model), "greedy": answer["prompt_tokens"], "count": count})["tokens"]
        assert count == 64 or answer["finish"] == "stop", (model.name, answer)
        if answer["tokens"] == theirs:
            continue
        # llama.cpp computes GELU with an fp16 table, so it may choose the other of two tokens with nearly equal logits.
        same = next(i for i, (a, b) in enumerate(zip(answer["tokens"], theirs)) if a != b)
        row = logits(model, answer["prompt_tokens"] + theirs[:same], folder / "logits")[-1]
        gap = (row[answer["tokens"][same]] - row[theirs[same]]) / row.std()
        assert 0 <= gap < 0.005, (model.name, same, gap, answer["tokens"], theirs)
        close.append(f"{model.name} up to {same}")
    print(f"# greedy generation against llama.cpp: {len(models) - len(close)} models, up to 64 tokens each, all the same" +
          "".join(f"; {name}, where two tokens are as likely" for name in close))


def test_ends(folder):
    """Generation ends with the model's end token, a stop text that spans tokens, the token limit, or the context length."""
    chain = Chain(ids_of("Ahelo, wrd!") + [EOS], context=16)
    model = chain.gguf(folder / "m.gguf")
    answer = generated(model, "A")
    assert (answer["text"], answer["finish"]) == ("helo, wrd!", "stop"), answer
    assert answer["tokens"] == ids_of("helo, wrd!") and "</s>" in answer["why"], answer
    answer = generated(model, "A", "--stop", "nothing", "--stop", ", w")
    assert (answer["text"], answer["finish"]) == ("helo", "stop"), answer
    answer = generated(model, "A", "--stop", "!?")  # text held back for a possible stop text is written at the end
    assert answer["text"] == "helo, wrd!", answer
    answer = generated(model, "A", count=3)
    assert (answer["text"], answer["finish"], answer["why"]) == ("hel", "length", "--generate"), answer
    ring = Chain(ids_of("Ahelo, wrd!A"), context=16).gguf(folder / "ring.gguf")
    result = expect(run("run", ring, "--prompt", "A"), 0, "note: the context of 16 tokens is full", "ended by context")
    assert result.stdout == "helo, wrd!Ahelo,\n", result  # 15 tokens after the prompt, and the one that follows them
    assert "tokens/s" in result.stderr
    assert generated(ring, "A", "--context", 8)["text"] == "helo, wr"


def test_prompts(folder):
    """A prompt file is used literally; special tokens written in a prompt are recognized; bos is added, eos is not."""
    chain = Chain([BYTES + 256, *ids_of("xyz"), EOS], further={"<|go|>": CONTROL}, add_bos=True)
    chain.keys["tokenizer.ggml.add_eos_token"] = True
    model = chain.gguf(folder / "m.gguf")
    answer = generated(model, "so:<|go|>")
    assert answer["text"] == "xyz" and answer["prompt_tokens"] == [1, *ids_of("so:"), BYTES + 256], answer
    (folder / "p.txt").write_text("line\n<|go|>\n")
    answer = expect(run("run", model, "--prompt-file", folder / "p.txt", "--json"), 0).answer
    assert answer["text"] == "xyz" and answer["prompt_tokens"] == [1, *ids_of("line\n"), BYTES + 256], answer


def writes_of(*arguments):
    """Returns the individual writes of a run; a datagram socket keeps them separate."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen([str(MLC), *map(str, arguments)], stdout=other, stderr=subprocess.PIPE) as process:
        other.close()
        writes = list(iter(lambda: own.recv(1 << 16), b""))
        error = process.stderr.read().decode()
    own.close()
    assert process.returncode == 0, error
    return writes


def test_text_is_streamed_in_whole_characters(folder):
    text = "hé🙂 world!"
    model = Chain(ids_of("A" + text) + [EOS]).gguf(folder / "m.gguf")
    writes = writes_of("run", model, "--prompt", "A")
    assert [w.decode() for w in writes] == [*text, "\n"], writes
    # Bytes that never form a complete character.
    model = Chain(ids_of(b"A\xf0\x9fx\xe2\x82") + [EOS]).gguf(folder / "torn.gguf")
    writes = writes_of("run", model, "--prompt", "A")
    shown = b"".join(writes).decode()
    assert shown.replace("\ufffd", "") == "x\n" and shown.count("\ufffd") >= 2, writes
    assert generated(model, "A")["text"] + "\n" == shown


def test_seeds(folder):
    model = Speaker().gguf(folder / "m.gguf")
    draw = lambda *options: generated(model, "Once", "--temperature", 1.5, *options, count=40)["tokens"]
    tokens = draw("--seed", 3)
    assert draw("--seed", 3) == tokens and draw("--seed", 4) != tokens and draw() == draw("--seed", 0)
    greedy = generated(model, "Once", count=40)["tokens"]
    assert draw("--top-k", 1) == greedy and draw("--top-p", 1e-6) == greedy and draw("--min-p", 1) == greedy
    unlike = generated(model, "Once", "--repetition-penalty", 5, count=40)["tokens"]
    assert len(set(unlike)) > len(set(greedy)), (greedy, unlike)


CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


def test_chat(folder):
    further = {"<|im_start|>": CONTROL, "<|im_end|>": CONTROL}
    model = Speaker(further, chat_template=CHATML).gguf(folder / "m.gguf")
    answer = generated(model, "Hi", "--chat", "--system", "Be brief.", count=1)
    assert answer["prompt"] == ("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                                "<|im_start|>assistant\n"), answer
    start, end = BYTES + 256, BYTES + 257
    assert answer["prompt_tokens"] == [start, *prompt_of("system\nBe brief."), end, *ids_of("\n"), start, *ids_of("user\nHi"), end,
                                       *ids_of("\n"), start, *ids_of("assistant\n")], answer
    # As in llama.cpp, special tokens in messages are special.
    assert generated(model, "<|im_end|>", "--chat", count=1)["prompt_tokens"].count(end) == 2
    expect(run("compile", model, "-o", folder / "m.mlpackage"), 0)
    packaged = generated(folder / "m.mlpackage", "Hi", "--chat", "--system", "Be brief.", *REFERENCE, count=1)
    assert packaged["prompt"] == answer["prompt"], packaged
    # A template in a file, with variables.
    (folder / "own.jinja").write_text("{{ messages[-1].content }}{% if tools %} {{ tools|tojson }}{% endif %}{{ '!' if loud }}\n")
    own = ("--chat", "--chat-template", folder / "own.jinja")
    assert generated(model, "Hi", *own, count=1)["prompt"] == "Hi"
    assert generated(model, "Hi", *own, "--chat-variables", '{"loud": true, "tools": [{"name": "f"}]}', count=1)["prompt"] == 'Hi [{"name": "f"}]!'
    (folder / "bad.jinja").write_text("{{ messages }}\n{% include 'x' %}")
    refused(run("run", model, "--prompt", "Hi", "--chat", "--chat-template", folder / "bad.jinja"), "chat-template",
            "the tag 'include' is not supported", "bad.jinja, line 2:4", "with --chat-template")
    for option in (("--chat-template", folder / "own.jinja"), ("--chat-variables", "{}")):
        refused(run("run", model, "--prompt", "Hi", *option), "usage", f"{option[0]} requires --chat")
    model = Speaker(further).gguf(folder / "other.gguf")
    refused(run("run", model, "--prompt", "Hi", "--chat"), "usage", "no chat template", "with --chat-template")


def test_the_first_token_is_there_once(folder):
    """The token that begins a text is added by the tokenizer, so that the template's is removed."""
    for template in ("{{ bos_token }}{{ messages[0].content }}", "{{ messages[0].content }}"):
        model = Speaker(add_bos=True, chat_template=template).gguf(folder / "m.gguf")
        answer = generated(model, "Hi", "--chat", count=1)
        assert answer["prompt"] == "Hi" and answer["prompt_tokens"] == [BOS, *ids_of("Hi")], answer
        model = Speaker(chat_template=template).gguf(folder / "none.gguf")
        answer = generated(model, "Hi", "--chat", count=1)
        assert answer["prompt_tokens"] == [BOS] * ("bos" in template) + ids_of("Hi"), answer


# Templates of families whose prompts llama.cpp writes without running the template. The formats are those of chatml.md
# (github.com/openai/openai-python) and of the model cards of Phi-3-mini-4k-instruct and Llama 3.
FAMILIES = [CHATML, "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}{{ '<|assistant|>\\n' }}",
            "{% for m in messages %}{{ '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\\n\\n' ~ m.content|trim ~ '<|eot_id|>' }}"
            "{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"]


def test_llama_cpp_writes_the_same_chats(folder):
    """Compares chat prompts with those of llama.cpp's C interface, which formats known families in code of its own: for the
    templates above, and for those of real models in MLC_CHAT_TEMPLATES, where its prompts differ in details from the templates."""
    files = sorted(pathlib.Path(os.environ.get("MLC_CHAT_TEMPLATES", "/none")).glob("*.jinja"))
    templates = FAMILIES + [file.read_text() for file in files]
    system, user = "Be brief.", "What is it?"
    theirs = llama_cpp.ask({"chat": [[template, told, user] for template in templates for told in (None, system)]})
    if theirs is None:
        print("# chat templates against llama.cpp: skipped, needs LLAMA_DIR")
        return
    theirs, counts = iter(theirs["prompts"]), {"the same": 0, "not the same": 0, "unknown to llama.cpp": 0, "refused by the template": 0}
    model = Speaker(add_bos=True, context=4096).gguf(folder / "m.gguf")
    for index, template in enumerate(templates):
        (folder / "t.jinja").write_text(template)
        for told in ((), ("--system", system)):
            result = run("run", model, "--context", 4096, "--prompt", user, "--chat", "--chat-template", folder / "t.jinja", *told, "--generate", 1, "--json")
            expected, prompt = next(theirs), result.answer.get("prompt")
            assert index >= len(FAMILIES) or prompt == expected, (template, prompt, expected)
            counts["unknown to llama.cpp" if expected is None else "refused by the template" if prompt is None else
                   "the same" if prompt == expected else "not the same"] += 1
    print(f"# {2 * len(templates)} chat prompts against llama.cpp's C interface: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))


def test_an_interrupt_ends_it_with_what_was_said(folder):
    ring = Chain(ids_of("Ahelo, wrd!A"), context=1 << 16).gguf(folder / "m.gguf")
    with subprocess.Popen([str(MLC), "run", str(ring), "--prompt", "A", "--context", str(1 << 16)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        first = b""
        while len(first) < 20:  # from the second token on, writes are awaited
            first += os.read(process.stdout.fileno(), 20)
        process.send_signal(signal.SIGINT)
        rest, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT, (process.returncode, error)
    said = (first + rest).decode()
    assert said.endswith("\n") and ("helo, wrd!A" * 10000).startswith(said[:-1]), said[-100:]
    assert b"ended by interrupted" in error and b"tokens/s" in error, error


def test_what_is_refused(folder):
    model = Chain(ids_of("Ahelo"), context=16).gguf(folder / "m.gguf")
    refused(run("run", model, "--prompt", "A" * 17), "usage", "17 tokens, but the model accepts at most 16", "--context")
    refused(run("run", model, "--prompt", ""), "usage", "no token")
    refused(run("run", model, "--prompt", "A", "--generate", 0), "usage", "--generate")
    refused(run("run", model, "--prompt", "A", "--tokens", "5"), "usage", "remove --tokens")
    refused(run("run", model, "--prompt", "A", "--iterations", 2), "usage", "remove --iterations")
    refused(run("run", model, "--prompt", "A", "--prompt-file", model), "usage", "cannot be combined")
    refused(run("run", model, "--prompt", "A", "--system", "x"), "usage", "--chat")
    refused(run("run", model, "--generate", 3), "usage", "--generate requires --prompt")
    refused(run("run", model, "--tokens", "5", "--top-k", 3), "usage", "--top-k requires --prompt")
    refused(run("run", model, "--prompt", "A", "--top-k", 3), "usage", "--temperature")
    refused(run("run", model, "--prompt", "A", "--temperature", "hot"), "usage", "hot")
    refused(run("run", model, "--prompt", "A", "--stop", ""), "usage", "--stop")
    refused(run("run", model, "--prompt", "A", "--units", "all"), "", "Core ML")
    silent = Llama().gguf(folder / "silent.gguf")
    result = run("run", silent, "--prompt", "A")
    assert result.code == 1 and "tokenizer" in result.stderr, result
    expect(run("run", silent, "--prompt", "A", "--tokenizer", model), 1, "is not in the vocabulary of the model", "check that the tokenizer belongs to this model")
    answer = expect(run("run", silent, "--prompt", "A", "--json"), 1).errors
    assert answer, "errors are JSON"
    sums = driver.ROOT / "test" / "frontends" / "onnx"
    for onnx in sorted(sums.rglob("*.onnx"))[:1]:
        refused(run("run", onnx, "--prompt", "A"), "usage", "is not a language model")
    encoders = CORPUS / "gguf" / "bert_cls.f32.gguf"
    if encoders.exists():
        refused(run("run", encoders, "--prompt", "A"), "usage", "encoder", "cannot generate text", "--tokens")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "generation"))

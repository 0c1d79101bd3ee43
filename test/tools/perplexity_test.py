"""Tests `mlc run --perplexity` and `mlc verify --text` against NumPy, using the logits of `mlc run --tokens`, and against llama.cpp."""
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import llama_cpp  # noqa: E402
from driver import CORPUS, expect, run, run_tests  # noqa: E402
from language_models import Llama, logits, refused  # noqa: E402
from speaking_models import BOS, EOS, Speaker, ids_of, prompt_of  # noqa: E402

TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the epoch "


def rows_of(model, ids, context, bos, folder, *options):
    """Returns (logits, next token) of all scored rows: from the middle of a chunk to the last but one."""
    rows, following = [], []
    for begin in range(0, len(ids) // context * context, context):
        chunk = ids[begin:begin + context]
        if bos:
            chunk[0] = BOS
        found = logits(model, chunk, folder / "logits", *options).astype("f8")
        rows.append(found[context // 2:-1])
        following += chunk[context // 2 + 1:]
    return np.concatenate(rows), np.array(following)


def log_softmax(rows):
    top = rows.max(1, keepdims=True)
    return rows - top - np.log(np.exp(rows - top).sum(1, keepdims=True))


def mean(values):
    """Returns the mean and its standard error."""
    return values.mean(), np.sqrt(max((values ** 2).mean() - values.mean() ** 2, 0) / (len(values) - 1))


def near(found, expected, what):
    assert abs(found - expected) <= 1e-5 * max(abs(expected), 1e-3), (what, found, expected)


def measured(model, text, *options):
    return expect(run("run", model, "--perplexity", text, *options, "--json"), 0).answer


def test_perplexity_is_what_the_logits_say(folder):
    text = folder / "text.txt"
    text.write_text(TEXT)
    for name, bos in (("plain", False), ("bos", True)):
        model = Speaker(add_bos=bos).gguf(folder / f"{name}.gguf")
        ids = [BOS] * bos + prompt_of(TEXT)
        for context in (31, 64):
            answer = measured(model, text, "--context", context)
            rows, following = rows_of(model, ids, context, bos, folder)
            surprise, error = mean(-log_softmax(rows)[np.arange(len(following)), following])
            near(answer["perplexity"], np.exp(surprise), (name, context))
            near(answer["error"], np.exp(surprise) * error, (name, context))
            assert answer["scored"] == len(following) and answer["context"] == context, answer
            assert answer["chunks"] == len(ids) // context and answer["tokens"] == len(ids), answer
    # By default, the context length of the model, but at most 512.
    assert measured(Speaker(context=100).gguf(folder / "short.gguf"), text)["context"] == 100
    (folder / "long.txt").write_text(TEXT * 5)
    long = Speaker(context=700).gguf(folder / "long.gguf")
    assert measured(long, folder / "long.txt")["context"] == 512


def test_folders_begin_chunks_as_files_do(folder):
    """The template of tokenizer.json determines whether tokens are added before a text."""
    text, context = folder / "text.txt", 31
    text.write_text(TEXT)
    model = Speaker()
    for name, around in (("plain", None), ("begin", ([BOS], [])), ("end", ([], [EOS])), ("both", ([BOS], [EOS]))):
        source = model.hugging_face(folder / name, around=around)
        bos = bool(around and around[0])
        ids = [BOS] * bos + prompt_of(TEXT) + (around[1] if around else [])
        rows, following = rows_of(source, ids, context, bos, folder)
        surprise = -log_softmax(rows)[np.arange(len(following)), following].mean()
        package = folder / f"{name}.mlpackage"
        expect(run("compile", source, "-o", package, "--precision", "fp32"), 0)
        for options in ((source,), (package, "--units", "reference", "--arithmetic", "exact")):
            answer = measured(options[0], text, "--context", context, *options[1:])
            assert abs(answer["perplexity"] / np.exp(surprise) - 1) < (1e-5 if options[0] == source else 1e-3), (name, answer, np.exp(surprise))
            assert answer["scored"] == len(following), answer


def test_a_package_against_its_source(folder):
    text, package = folder / "text.txt", folder / "m.mlpackage"
    text.write_text(TEXT)
    model = Speaker().gguf(folder / "m.gguf")
    expect(run("compile", model, "-o", package), 0)
    result = expect(run("verify", model, package, "--text", text, "--context", 32, "--json"), 0)
    answer = result.answer
    p, following = rows_of(model, prompt_of(TEXT), 32, False, folder)
    q, _ = rows_of(package, prompt_of(TEXT), 32, False, folder)
    log_p, log_q, at = log_softmax(p), log_softmax(q), np.arange(len(following))
    for name, rows in (("source", log_p), ("package", log_q)):
        surprise, error = mean(-rows[at, following])
        near(answer[name]["perplexity"], np.exp(surprise), name)
        near(answer[name]["error"], np.exp(surprise) * error, name)
    ratio, error = mean((log_p - log_q)[at, following])
    near(answer["ratio"]["mean"], np.exp(ratio), "ratio")
    near(answer["ratio"]["error"], np.exp(ratio) * error, "ratio")
    divergence = (np.exp(log_p) * (log_p - log_q)).sum(1)
    assert 0 < answer["divergence"]["mean"] < 1e-3 and abs(answer["divergence"]["mean"] - divergence.mean()) < 1e-7, answer
    assert abs(answer["divergence"]["most"] - divergence.max()) < 1e-7, answer
    near(answer["top1"]["share"], (p.argmax(1) == q.argmax(1)).mean(), "top1")
    tops = [np.argsort(-rows, 1, kind="stable")[:, :5] for rows in (p, q)]
    near(answer["top5"]["share"], np.mean([len(set(a) & set(b)) / 5 for a, b in zip(*tops)]), "top5")
    assert answer["ok"] and answer["budget"]["name"] == "fp16" and answer["text"]["scored"] == len(following), answer
    alone = measured(package, text, "--context", 32, "--units", "reference")
    near(alone["perplexity"], answer["package"]["perplexity"], "the package alone")
    expect(run("verify", model, package, "--text", text, "--context", 64), 0, "perplexity, source", "KL divergence", "PASSED", "same top token")


def test_what_does_not_agree_fails(folder):
    text, package, short = folder / "text.txt", folder / "m.mlpackage", ("--context", 64)
    text.write_text(TEXT)
    model = Speaker().gguf(folder / "m.gguf")
    expect(run("compile", model, "-o", package, "--requant", "int4"), 0)
    expect(run("verify", model, package, "--text", text, *short), 3, "FAILED")
    answer = expect(run("verify", model, package, "--text", text, *short, "--json"), 3).answer
    assert answer["ok"] is False and answer["divergence"]["mean"] > answer["budget"]["divergence"], answer
    expect(run("compile", model, "-o", package), 0)
    expect(run("verify", model, package, "--text", text, *short, "--budget", "int8"), 0, "budget: int8")
    other = Speaker()
    other.whole["output"] = -other.whole["output"]
    expect(run("verify", other.gguf(folder / "other.gguf"), package, "--text", text, *short, "--budget", "int8"), 3)


def test_llama_cpp_has_the_same_perplexity(folder):
    files = [CORPUS / "gguf" / f"llama.{kind}.gguf" for kind in ("f32", "F16", "Q8_0")]
    if not files[0].exists() or llama_cpp.ask({"chat": []}) is None:
        print("# perplexity against llama.cpp: skipped, needs ../shared/corpus and LLAMA_DIR")
        return
    text, shown = folder / "text.txt", []
    text.write_text(TEXT * 4)
    for file in files:
        ids = llama_cpp.ask({"model": str(file), "encode": TEXT * 4})["tokens"]
        for context in (64, 128):
            mine = measured(file, text, "--context", context)
            assert mine["tokens"] == len(ids), (mine, len(ids))
            theirs = llama_cpp.ask({"model": str(file), "perplexity": ids, "context": context})["perplexity"]
            shown.append(abs(mine["perplexity"] / theirs - 1))
            assert shown[-1] < 0.01, (file.name, context, mine["perplexity"], theirs)
    print(f"# perplexity against llama.cpp: {len(shown)} figures of F32, F16 and Q8_0, off by {100 * max(shown):.3f} % at most")


def test_what_is_refused(folder):
    text, package = folder / "text.txt", folder / "m.mlpackage"
    text.write_text("short")
    model = Speaker().gguf(folder / "m.gguf")
    expect(run("compile", model, "-o", package), 0)
    refused(run("run", model, "--perplexity", text), "usage", "5 tokens, less than one chunk", "--context")
    refused(run("run", model, "--perplexity", text, "--context", 3), "usage", "4 to 3")
    refused(run("run", package, "--perplexity", text, "--context", 300, "--units", "reference"), "usage", "4 to 256")
    refused(run("run", model, "--perplexity", text, "--prompt", "x"), "usage", "cannot be combined")
    refused(run("run", model, "--perplexity", folder / "none.txt"), "file-io")
    refused(run("run", model, "--perplexity", text, "--top-k", 3), "usage", "--top-k requires --prompt")
    text.write_text(TEXT)
    refused(run("verify", model, model, "--text", text), "usage", "source model")
    refused(run("verify", package, package, "--text", text), "usage", "the same")
    refused(run("verify", model, package, "--text", text, "--tokens", "5"), "usage", "remove --tokens")
    refused(run("verify", model, package, "--text", text, "--budget", "tight"), "bad-name", "fp32, fp16 or int8")
    refused(run("verify", model, package, "--tokenizer", model), "usage", "--text")
    silent = Llama().gguf(folder / "silent.gguf")
    refused(run("verify", silent, package, "--text", text, "--tokenizer", model), "usage", "50 tokens")


if __name__ == "__main__":
    sys.exit(run_tests(globals(), "perplexity"))

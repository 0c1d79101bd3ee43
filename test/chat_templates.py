"""Renders chat templates with Debian's python3-jinja2, set up as transformers does (transformers/utils/chat_template_utils.py),
and makes conversations of every kind that templates tell apart."""
import datetime
import functools
import itertools
import json

try:
    import jinja2
    import jinja2.ext
    import jinja2.sandbox
except ImportError:
    jinja2 = None

NOW = 1735689600 + 12 * 3600  # 2025-01-01, at noon, so that the date is the same in most time zones

if jinja2:
    class Generation(jinja2.ext.Extension):
        """{% generation %}: the text in it is that of the assistant, which only training needs."""
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

        def _render(self, caller):
            return caller()


@functools.lru_cache
def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                        extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda format: datetime.datetime.fromtimestamp(NOW).strftime(format)
    return made


@functools.lru_cache(maxsize=8)
def compiled(template):
    return environment().from_string(template)


def render(template, variables):
    """Returns (text, None), or (None, message) for an exception of the template."""
    try:
        return compiled(template).render(**variables), None
    except Exception as error:  # any exception of the code that jinja2 compiles
        return None, f"{type(error).__name__}: {error}"


TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a city — now, or \"later\"",
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "The city's name"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 7.5},
            "where": {"type": "object", "properties": {"lat": {"type": "number"}, "tags": {
                "type": "array", "items": {"type": "string"}}}}}},
        "return": {"type": "string", "description": "The weather"}}},
    {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}},
]


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def call(name, arguments, identity="call12345"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def conversations():
    """Yields (name, variables without tokens)."""
    hello, brief = user("Hello, <b>\"world\"</b> & 'all'\n\tünïcödé 🙂  "), system("  Be brief.\n")
    reply = assistant("Hi there!\n\n")
    calls = assistant("", tool_calls=[call("get_weather", {"city": "Zürich", "days": 2, "deep": {"a": [1, None, True, 1.5]}})])
    two = assistant(None, tool_calls=[call("get_weather", {"city": "Rome"}), call("now", {}, "call67890")])
    text_calls = assistant("", tool_calls=[call("get_weather", json.dumps({"city": "Zürich"}))])
    result = {"role": "tool", "name": "get_weather", "tool_call_id": "call12345", "content": "{\"sun\": true}"}
    result2 = {"role": "tool", "name": "now", "tool_call_id": "call67890", "content": "12:00"}
    think = assistant("<think>\nA thought.\n</think>\n\nAn answer.")
    reason = assistant("An answer.", reasoning_content="A thought.")
    parts = user([{"type": "text", "text": "Look: "}, {"type": "image"}, {"type": "text", "text": "what is it?"}])
    lists = {
        "hello": [hello],
        "system": [brief, hello],
        "turns": [hello, reply, user("And now?")],
        "system-turns": [brief, hello, reply, user("And now?"), assistant("Later."), user("When?")],
        "answered": [hello, reply],
        "empty": [system(""), user(""), assistant(""), user("x")],
        "none": [hello, assistant(None), user("x")],
        "thought": [hello, think, user("Why?")],
        "reasoned": [hello, reason, user("Why?"), reason],
        "parts": [brief, parts],
        "parts-all": [system([{"type": "text", "text": "Be brief."}]), user([{"type": "text", "text": "Hello"}]),
                      assistant([{"type": "text", "text": "Hi"}]), user([{"type": "text", "text": "x"}])],
        "calls": [hello, calls, result],
        "calls-answered": [brief, hello, calls, result, assistant("Sunny."), user("Thanks")],
        "calls-two": [hello, two, result, result2],
        "calls-text": [hello, text_calls, result, assistant("Sunny.")],
        "calls-last": [hello, calls],
        "calls-reasoned": [hello, {**calls, "reasoning_content": "I need it."}, result],
        "result-object": [hello, calls, {**result, "content": {"sun": True, "t": 21.5, "n": None}}],
        "users": [hello, user("Again")],
        "first-assistant": [reply, hello],
        "system-last": [hello, reply, system("Be long.")],
        "role": [{"role": "developer", "content": "Be exact."}, hello],
        "unknown-role": [{"role": "ghost", "content": "Boo"}, hello],
        "nothing": [],
        "no-content": [{"role": "user"}],
    }
    for name, messages in lists.items():
        for tools, add in itertools.product((None, TOOLS), (True, False)):
            if tools and name in ("empty", "none", "users", "nothing", "no-content", "unknown-role"):
                continue
            yield (f"{name}{'+tools' if tools else ''}{'+prompt' if add else ''}",
                   {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": add})
    yield "thinking-off", {"messages": [hello], "tools": None, "documents": None, "add_generation_prompt": True, "enable_thinking": False}
    yield "thinking-on", {"messages": [hello, think, user("x")], "tools": TOOLS, "documents": None, "add_generation_prompt": True,
                          "enable_thinking": True}
    yield "continue", {"messages": [hello, assistant("The answer is")], "tools": None, "documents": None,
                       "add_generation_prompt": False, "continue_final_message": True}
    yield "effort", {"messages": [brief, hello], "tools": TOOLS, "documents": None, "add_generation_prompt": True,
                     "reasoning_effort": "high", "builtin_tools": ["browser", "python"], "model_identity": "You are X."}
    yield "documents", {"messages": [hello], "tools": None, "add_generation_prompt": True,
                        "documents": [{"title": "T", "text": "One.", "snippet": "s"}, {"title": "U", "text": "Two.", "url": "u"}]}


TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}

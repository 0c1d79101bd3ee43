"""Validates a JSON value against the subset of JSON Schema used by the schemas in manifests/."""
import re

TYPES = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool,
         "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "pattern", "minimum", "maximum",
         "minItems", "items", "required", "properties", "minProperties", "additionalProperties"}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("number", "integer"))


def errors(value, schema, root=None, at="$"):
    """Returns the violations, each as "PATH: TEXT". Raises KeyError for an unsupported keyword."""
    root = root if root is not None else schema
    if schema is True or schema is False:
        return [] if schema else [f"{at}: not allowed"]
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return errors(value, target, root, at)
    if unknown := set(schema) - KNOWN:
        raise KeyError(f"{at}: schema keywords {sorted(unknown)}")
    found = []

    def check(ok, text):
        if not ok:
            found.append(f"{at}: {text}")

    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    check(not types or any(is_type(value, t) for t in types), f"is not of type {types}")
    check("enum" not in schema or value in schema["enum"], f"is none of {schema.get('enum')}")
    check("const" not in schema or value == schema["const"], f"is not {schema.get('const')!r}")
    if isinstance(value, str):
        check(re.search(schema.get("pattern", "").replace("$", r"\Z"), value), f"does not match {schema.get('pattern')}")
    if is_type(value, "number"):
        check(value >= schema.get("minimum", value), f"is below {schema.get('minimum')}")
        check(value <= schema.get("maximum", value), f"is above {schema.get('maximum')}")
    if isinstance(value, list):
        check(len(value) >= schema.get("minItems", 0), f"has fewer than {schema.get('minItems')} items")
        for i, item in enumerate(value):
            found += errors(item, schema.get("items", True), root, f"{at}[{i}]")
    if isinstance(value, dict):
        check(len(value) >= schema.get("minProperties", 0), f"has fewer than {schema.get('minProperties')} members")
        for name in schema.get("required", []):
            check(name in value, f"lacks {name!r}")
        for name, item in value.items():
            default = schema.get("additionalProperties", True)
            found += errors(item, schema.get("properties", {}).get(name, default), root, f"{at}.{name}")
    return found

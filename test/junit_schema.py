"""Checks a JUnit file against the rules of junit-10.xsd, the schema of Jenkins' xunit plugin."""
import re
import xml.etree.ElementTree

# The type SUREFIRE_TIME.
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?\Z")
ANY = re.compile(r".*\Z", re.S)

# Element: required attributes, optional attributes with their patterns, children; text is allowed where marked.
RULES = {
    "testsuites": ((), {"name": ANY, "time": TIME, "tests": ANY, "failures": ANY, "errors": ANY}, {"testsuite"}, False),
    "testsuite": (("name", "tests", "failures", "errors"),
                  {"group": ANY, "time": TIME, "skipped": ANY, "timestamp": ANY, "hostname": ANY, "id": ANY, "package": ANY,
                   "file": ANY, "log": ANY, "url": ANY},
                  {"testsuite", "properties", "testcase", "system-out", "system-err"}, False),
    "testcase": (("name",), {"time": ANY, "classname": ANY, "group": ANY},
                 {"skipped", "error", "failure", "rerunFailure", "rerunError", "flakyFailure", "flakyError", "system-out",
                  "system-err"}, False),
    "properties": ((), {}, {"property"}, False),
    "property": (("name", "value"), {}, set(), False),
    "failure": ((), {"type": ANY, "message": ANY}, set(), True),
    "error": ((), {"type": ANY, "message": ANY}, set(), True),
    "skipped": ((), {"type": ANY, "message": ANY}, set(), True),
    "system-out": ((), {}, set(), True),
    "system-err": ((), {}, set(), True),
}


def errors(text):
    """Returns the violations of the schema, and counts of a suite that differ from its cases."""
    root = xml.etree.ElementTree.fromstring(text)
    found = [] if root.tag in ("testsuites", "testsuite") else [f"root element {root.tag}"]

    def check(element, at):
        if element.tag not in RULES:
            found.append(f"{at}: unknown element")
            return
        required, optional, children, has_text = RULES[element.tag]
        found.extend(f"{at}: lacks {name}" for name in required if name not in element.attrib)
        for name, value in element.attrib.items():
            pattern = optional.get(name, ANY if name in required else None)
            if pattern is None or not pattern.match(value):
                found.append(f"{at}: {name}={value!r}")
        if not has_text and "".join([element.text or "", *[child.tail or "" for child in element]]).strip():
            found.append(f"{at}: text")
        for i, child in enumerate(element):
            if child.tag not in children:
                found.append(f"{at}: {child.tag} is not allowed here")
            check(child, f"{at}/{child.tag}[{i}]")
        if element.tag == "testsuite":
            cases = element.findall("testcase")
            for name, count in (("tests", len(cases)), ("failures", sum(c.find("failure") is not None for c in cases)),
                                ("errors", sum(c.find("error") is not None for c in cases)),
                                ("skipped", sum(c.find("skipped") is not None for c in cases))):
                if name in element.attrib and element.attrib[name] != str(count):
                    found.append(f"{at}: {name} is {element.attrib[name]}, found {count}")

    check(root, root.tag)
    return found

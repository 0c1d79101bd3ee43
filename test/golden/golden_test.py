#!/usr/bin/env python3
"""Runs the golden files: golden_test.py [--update] [FILE|FOLDER...]. The format is in test/README.md.

--update replaces the expectations with the current output of the commands.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get('MLC_BUILD_DIR', ROOT / 'build')) / 'bin'
# Without what would change the form of the output.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ('COLUMNS', 'CLICOLOR_FORCE')}
RUN, CHECK, SPLIT = '// RUN: ', '// CHECK', '// ----'


def cases(lines):
    """Yields (first line number, lines) of each case of a file."""
    begin = 0
    for i, line in enumerate(lines + [SPLIT]):
        if line.strip() == SPLIT:
            yield begin, lines[begin:i]
            begin = i + 1


def tool_in(words):
    """Returns the index of the tool, behind variables of its environment (NAME=VALUE)."""
    return next(i for i, word in enumerate(words) if not re.match(r'[A-Z_]+=', word))


def run(command, path, first_line, source):
    """Returns the output of the command in the form of a CHECK section."""
    with tempfile.TemporaryDirectory() as folder:
        # Empty comments before the case preserve the line numbers in messages.
        text = '//\n' * first_line + '\n'.join(source) + '\n'
        pathlib.Path(folder, path.name).write_text(text)
        words = [path.name if word == '%s' else word for word in shlex.split(command)]
        at = tool_in(words)
        environment = {**ENVIRONMENT, **dict(word.split('=', 1) for word in words[:at])}
        words = [str(BIN / words[at]), *words[at + 1:]]
        done = subprocess.run(words, cwd=folder, capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                              env=environment)
    out = [f'// exit {done.returncode}'] if done.returncode else []
    out += [f'// {line}'.rstrip() for line in done.stderr.decode(errors='replace').splitlines()]
    return '\n'.join(out + done.stdout.decode(errors='replace').splitlines()).strip('\n').splitlines()


def same(expected, actual):
    """Returns whether the lines are equal; an expected line "..." matches any number of lines."""
    pattern = ''.join('(?:.*\n)*?' if line == '...' else re.escape(line) + '\n' for line in expected)
    return re.fullmatch(pattern, ''.join(line + '\n' for line in actual)) is not None


def check(path, update):
    """Returns (number of cases, failures, commands that were not built) of one file."""
    lines = path.read_text().splitlines()
    command, count, failures, missing, rewritten = None, 0, [], set(), []
    for first, case in cases(lines):
        for line in case:
            if line.startswith(RUN):
                command = line[len(RUN):].strip()
        where = f'{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{first + 1}'
        marks = [i for i, line in enumerate(case) if line.strip() == CHECK]
        if command is None or (not marks and not update):
            failures.append(f'{where}: a case needs "{RUN.strip()}" and "{CHECK}"')
            return count, failures, missing
        mark = marks[0] if marks else len(case)
        source, expected = case[:mark], case[mark + 1:]
        words = shlex.split(command)
        tool = words[tool_in(words)]
        if not (BIN / tool).exists():
            missing.add(tool)
            return count, failures, missing
        count += 1
        try:
            actual = run(command, path, first, source)
        except subprocess.TimeoutExpired:
            actual = ['// timeout']
        expected = '\n'.join(expected).strip('\n').splitlines()
        if same(expected, actual):
            actual = expected
        else:
            diff = difflib.unified_diff(expected, actual, 'expected', 'printed', lineterm='')
            failures.append('\n'.join([f'{where}: {command}', *diff]))
        while source and not source[-1].strip():
            source.pop()
        rewritten.append('\n'.join([*source, CHECK, *actual]))
    if update and failures:
        path.write_text(f'\n{SPLIT}\n'.join(rewritten) + '\n')
        print(f'updated {path}')
        failures = []
    return count, failures, missing


def main():
    arguments = sys.argv[1:]
    update = '--update' in arguments
    roots = [pathlib.Path(a).resolve() for a in arguments if a != '--update'] or [pathlib.Path(__file__).parent]
    files = []
    for root in roots:
        found = [root] if root.is_file() else sorted(p for p in root.rglob('*') if p.suffix in ('.mil', '.txt'))
        files += found
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = list(pool.map(lambda path: check(path, update), files))
    total = sum(count for count, _, _ in results)
    failures = [failure for _, failed, _ in results for failure in failed]
    missing = set().union(*(names for _, _, names in results))
    for failure in failures:
        print(failure + '\n')
    print(f'# golden: {total} cases in {len(files)} files, {len(failures)} failed')
    for tool in sorted(missing):
        print(f'# golden: skipped, {tool} is not built')
    if failures:
        return 1
    return 77 if total == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
